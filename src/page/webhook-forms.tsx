import type { ResultOf } from '../operations/all.js'
import { useAsked, useLive } from './api.js'
import { Button, Confirm, EditDialog, useDialog } from './forms.js'
import { go, linkTo } from './route.js'
import { useSchemaFields } from './schema-form.js'

type Webhook = ResultOf<'webhook list'>['data'][number]

function Edit({ of: webhook }: { of: Partial<Webhook> }) {
  const { ask } = useLive()
  const types = useAsked('webhook event-types').result ?? []
  const { id, name, url = '' } = webhook
  const hints = {
    name: { help: '' },
    notify_email: { label: 'E-mail address' },
    events: { choices: types, help: 'The webhook gets an event of each chosen type.' },
    url: url.endsWith('?…')
      ? {
          help: 'This page does not show the query of the URL. If you do not change this field, the query stays.',
        }
      : {},
  }
  const operation = id === undefined ? 'webhook create' : 'webhook update'
  const { read, draw } = useSchemaFields({ operation, of: webhook, hints })
  const save = async (_: unknown, data: FormData) => {
    if (id !== undefined) return ask('webhook update', { ...read(data), id })
    return go(linkTo('webhooks', (await ask('webhook create', read(data))).id))
  }
  return (
    <EditDialog title={id ? `Edit ${name}` : 'New webhook'} verb={id ? 'Save' : 'Create'} send={save}>
      {draw()}
    </EditDialog>
  )
}

export function NewWebhook() {
  const show = useDialog()
  return <Button class="primary" text="New webhook" act={() => show(<Edit of={{}} />)} />
}

export function ChangeWebhook({ of: webhook }: { of: Webhook }) {
  const { ask } = useLive()
  const show = useDialog()
  const { id, name } = webhook
  const leave = () =>
    show(
      <Confirm
        title={`Delete ${name}?`}
        text="The webhook gets no more events. Its deliveries are deleted too."
        verb="Delete"
        act={() => ask('webhook delete', { id }).then(() => go(linkTo('webhooks')))}
      />,
    )
  return (
    <>
      <Button class="push" text="Edit" act={() => show(<Edit of={webhook} />)} />
      <Button class="danger" text="Delete …" act={leave} />
    </>
  )
}
