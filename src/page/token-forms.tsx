/** The page sends data, but never shows stored data without its mask. */
import { useState } from 'preact/hooks'
import type { ResultOf } from '../operations/all.js'
import { useLive } from './api.js'
import { EditDialog } from './forms.js'
import { SAMPLES } from './recorded.js'
import { go, linkTo } from './route.js'
import { type Hint, useSchemaFields } from './schema-form.js'
import { refuse } from './schema-text.js'
import { formatJson } from './text.js'

type Token = ResultOf<'token list'>['data'][number]

/** For these types, data is text even if it looks like a number. */
const isTextType = (type: string) => typeof SAMPLES[type] === 'string' && type !== 'token'

const USUAL = 'default of its type'
const MASK = {
  help: 'The mask is shown instead of the data, also on this page. It can be any JSON. Its strings are expressions over the data.',
  rows: 3,
}
const LINES: Record<string, Hint> = {
  containers: { help: 'Write one container on each line, such as /pci/high/.', rows: 2 },
  search_indexes: {
    help: 'Write one expression on each line. The value of the expression can be searched.',
    rows: 2,
  },
  metadata: { help: 'Write one NAME=value on each line. Metadata is not secret.', rows: 3 },
  expires_at: { help: 'In UTC. Empty: never.' },
}

export function NewToken() {
  const { ask } = useLive()
  const [type, setType] = useState('card')
  const hints: Record<string, Hint> = {
    ...LINES,
    type: { change: setType },
    id: { placeholder: 'a random UUID', help: '' },
    data: { key: type, rows: 6, isText: isTextType(type), help: 'This page shows the data masked.' },
    containers: { ...LINES.containers, placeholder: USUAL },
    mask: { ...MASK, placeholder: USUAL },
  }
  const of = { type, data: formatJson(SAMPLES[type]) }
  const { read, draw } = useSchemaFields({
    operation: 'token create',
    names: ['type', 'id', 'data', 'containers', 'expires_at', 'mask', 'metadata', 'search_indexes'],
    ...{ of, hints },
  })
  const create = async (_: unknown, data: FormData) =>
    go(linkTo('tokens', (await ask('token create', read(data))).id))
  return (
    <EditDialog title="New token" verb="Create" send={create}>
      <div class="form">{draw('type', 'id', 'expires_at')}</div>
      {draw('data', 'containers', 'mask', 'metadata', 'search_indexes')}
    </EditDialog>
  )
}

export function EditToken({ of: token }: { of: Token }) {
  const { ask } = useLive()
  const { id, type } = token
  const hints: Record<string, Hint> = {
    ...LINES,
    mask: { ...MASK, help: `${MASK.help} If the mask is empty, no data is shown.` },
    data: {
      isKept: true,
      isText: isTextType(type),
      rows: 6,
      help: 'If the stored data is an object, members that are missing here stay, and null removes a member.',
    },
  }
  const { data: _, ...of } = token
  const { read, draw } = useSchemaFields({
    operation: 'token update',
    names: ['metadata', 'containers', 'mask', 'expires_at', 'search_indexes', 'data'],
    ...{ of, hints, isPatch: true },
  })
  const save = async (_: unknown, data: FormData) => {
    // If tokens are deduplicated, the server can answer with another token that has the same data.
    const found = await ask('token update', { ...read(data), id })
    if (found.id !== id) refuse({ data: [`is the data of the token ${found.id}, so nothing was changed`] })
  }
  return (
    <EditDialog title="Edit the token" verb="Save" send={save}>
      {draw()}
    </EditDialog>
  )
}
