import * as delivery from './delivery.js'
import * as webhook from './webhook.js'

export const noun = {
  name: 'webhook',
  summary: 'Have events sent to an address',
  operations: [
    webhook.createWebhook,
    webhook.listWebhooks,
    webhook.getWebhook,
    webhook.updateWebhook,
    webhook.deleteWebhook,
    webhook.listEventTypes,
    delivery.listDeliveries,
    delivery.resendDelivery,
  ],
}
