/** The owner's commands that are no operations: they are about the vault itself, and no application may give them. */
import type { App } from './app.js'
import { CofferError } from './errors.js'

type VaultCommand = (app: App, input: Record<string, unknown>) => Promise<unknown>

const COMMANDS: Record<string, VaultCommand> = {
  'vault status': describeVault,
}

/** Runs the command called `name`. @throws CofferError whatever it refuses. */
export async function runVaultCommand(
  app: App,
  name: string,
  input: Record<string, unknown>,
): Promise<unknown> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new CofferError('not_found', `There is no command "${name}".`)
  return command(app, input)
}

/** Input `tenant`: whose tokens and log records are counted. */
async function describeVault(app: App, { tenant }: { tenant?: string }): Promise<unknown> {
  const { id, name, owner_id, number } = await app.tenant(tenant)
  const count = (kind: 'token' | 'log') =>
    app.store.read(async (reader) => (await reader.find(kind, number, { page: 1, size: 1 })).total)
  return {
    ...(await app.describe()),
    tenant: { id, name, owner_id },
    tokens: await count('token'),
    logs: await count('log'),
  }
}
