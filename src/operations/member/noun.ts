import * as member from './member.js'

export const noun = {
  name: 'member',
  summary: 'List, change and remove members of your tenant',
  operations: [member.listMembers, member.updateMember, member.deleteMember, member.listRoles],
}
