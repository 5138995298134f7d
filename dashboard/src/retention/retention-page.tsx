// How long workflows are kept, the archive of those that were deleted, and cleaning up by hand.
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { retention as retentionQuery } from '../api/queries';
import { useSession } from '../api/session';
import { Page } from '../frame/frame';
import { Failure, Loading } from '../parts/notice';
import { Archive } from './archive';
import { CleanUp } from './clean-up';
import { Policy } from './policy';

export function RetentionPage(): ReactNode {
  const { data, error, refetch } = useQuery(retentionQuery);
  const { isReadOnly } = useSession();
  return (
    <Page title="Retention and archive">
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading rows={3} />}
        {data && <Policy {...data} />}
        {data && <Archive isConfigured={data.isArchiving} />}
        {!isReadOnly && <CleanUp />}
      </div>
    </Page>
  );
}
