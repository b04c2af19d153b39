/**
 * The account updater: finds out from published test data which cards were replaced, and creates tokens for the new
 * cards.
 */
import { createJob, downloadJob, getJob, listJobs, uploadJob } from './jobs.js'
import { updateNow } from './real-time.js'

export const noun = {
  name: 'updater',
  summary: 'Replace cards that were reissued, from published test data',
  groups: { job: 'Update the cards of a file.' },
  operations: [updateNow, createJob, getJob, listJobs, uploadJob, downloadJob],
}
