import { withEverstep } from 'everstep/next';

export default withEverstep({});
