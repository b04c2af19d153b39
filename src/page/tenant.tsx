import { useState } from 'preact/hooks'
import { useAsked, useLive } from './api.js'
import { Form, Submit } from './forms.js'
import { Facts } from './parts.js'
import { type Hint, useSchemaFields } from './schema-form.js'
import { Screen } from './screen.js'
import { Time } from './text.js'

const HINTS: Record<string, Hint> = {
  name: { help: '' },
  settings: {
    help: 'Deduplicate tokens: if equal data is stored again, the existing token is returned. Disable ephemeral proxy: a call must name a proxy, not a URL.',
  },
}

export function Tenant() {
  const { session } = useLive()
  const { result: tenant, error } = useAsked('tenant get')
  const server = {
    Version: session.version,
    Vault: session.place,
    Seed: session.seed,
    Address: <code>{location.origin}</code>,
    'Header with the API key': <code>{session.header}</code>,
  }
  return (
    <Screen kind="page" error={error} isLoading={tenant === undefined}>
      <div class="columns">
        <section class="card stack" aria-label="Name and settings">
          <h2>Name and settings</h2>
          {tenant && <Settings key={tenant.modified_at} of={tenant} />}
        </section>
        <div class="stack">
          {tenant && (
            <section class="card stack" aria-label="About the tenant">
              <h2>About {tenant.name}</h2>
              <Facts
                of={{
                  Id: <code>{tenant.id}</code>,
                  'Owner id': <code>{tenant.owner_id}</code>,
                  Created: tenant.created_at && <Time of={tenant.created_at} by={tenant.created_by} />,
                  Modified: tenant.modified_at && <Time of={tenant.modified_at} by={tenant.modified_by} />,
                }}
              />
            </section>
          )}
          <section class="card stack" aria-label="About the server">
            <h2>About this server</h2>
            <Facts of={server} />
          </section>
        </div>
      </div>
    </Screen>
  )
}

/** A new attribute in the schema of the operation gets a field without a change here. */
function Settings({ of }: { of: object }) {
  const { ask } = useLive()
  const { read, draw } = useSchemaFields({ operation: 'tenant update', of, hints: HINTS })
  const [isSaved, setSaved] = useState(false)
  const save = async (_: unknown, data: FormData) => {
    setSaved(false)
    await ask('tenant update', read(data))
    setSaved(true)
  }
  return (
    <Form class="stack" send={save}>
      {draw()}
      <div class="row">
        <Submit text="Save" kind="primary" />
        <span class="dim" role="status">
          {isSaved && 'Saved.'}
        </span>
      </div>
    </Form>
  )
}
