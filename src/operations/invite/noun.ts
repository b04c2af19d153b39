import { acceptInvitationLink } from './accept-invitation.js'
import * as invite from './invite.js'
import { readOutbox } from './outbox.js'

export const noun = {
  name: 'invite',
  summary: 'Invite people to your tenant',
  operations: [
    invite.createInvitation,
    invite.listInvitations,
    invite.getInvitation,
    invite.resendInvitation,
    invite.deleteInvitation,
    readOutbox,
    acceptInvitationLink,
  ],
}
