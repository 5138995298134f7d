import { onlyOn } from '../rig/dialects.js';
import { faultCampaign } from './campaign.js';

onlyOn('sqlite', faultCampaign);
