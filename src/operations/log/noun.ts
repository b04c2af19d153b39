import * as log from './log.js'

export const noun = {
  name: 'log',
  summary: 'Read and verify the audit log',
  operations: [log.listLogs, log.listEntityTypes, log.tailLog, log.countReveals, log.verifyLog],
}
