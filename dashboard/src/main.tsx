import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createQueryClient } from './api/queries';
import { applyStoredTheme } from './frame/theme';
import { createPages } from './router';
import './styles/tokens.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/workflows.css';
import './styles/workflow.css';

applyStoredTheme();
const client = createQueryClient();
const router = createPages(client);
const element = document.getElementById('root');
if (element) {
  createRoot(element).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
