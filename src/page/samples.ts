/** Formats requests as sample code that reads the API key from the environment. */
export interface Call {
  method: string
  path: string
  /** The header with the API key. Undefined for a request without a key. */
  header?: string | undefined
  type?: string | undefined
  body?: string | undefined
  /** For a command: the name of the operation, and its path with `{id}` in place of ids. */
  operation?: string | undefined
  template?: string | undefined
}

/** Any text as one word of a POSIX shell. */
const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const indent = (lines: string[], by: string) => lines.map((line) => `${by}${line}\n`).join('')

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** curl expands `[]` and `{}` in addresses, and removes `..`, unless these options forbid it. */
const curlOptions = (path: string) => [
  ...(/[[\]{}]/.test(path) ? ['--globoff'] : []),
  ...(/\/\./.test(path) ? ['--path-as-is'] : []),
]

/** The ids in the path, in the order of the template. Returns undefined if the path does not match the template. */
function idsOf(path: string, template: string): string[] | undefined {
  const [given, known] = [path.split('?')[0]!.split('/'), template.split('/')]
  if (given.length !== known.length) return undefined
  const ids = given.filter((_, at) => known[at]!.startsWith('{'))
  try {
    return ids.map(decodeURIComponent)
  } catch {
    return undefined
  }
}

export const LANGUAGES: Record<string, (call: Call & { origin: string }) => string | undefined> = {
  curl: ({ origin, method, path, header, type, body }) =>
    [
      // Without a limit for the method, a method that a client has made up could contain anything.
      `curl ${method === 'GET' ? '' : `-X ${quote(method).replace(/^'([A-Z]+)'$/, '$1')} `}${quote(origin + path)}`,
      ...curlOptions(path),
      ...(header === undefined ? [] : [`-H "${header}: $COFFER_API_KEY"`]),
      // `--data-raw`, because `-d` reads a file if the body begins with `@`.
      ...(body === undefined ? [] : [`-H ${quote(`Content-Type: ${type}`)}`, `--data-raw ${quote(body)}`]),
    ].join(' \\\n  '),
  coffer: ({ origin, path, header, body, operation, template }) => {
    const ids = template === undefined ? undefined : idsOf(path, template)
    if (operation === undefined || ids === undefined || header === undefined || path.includes('?'))
      return undefined
    const named = ids.length === 0 ? '' : ` -- ${ids.map(quote).join(' ')}`
    const input = body === undefined ? '' : `printf %s ${quote(body)} | `
    const file = body === undefined ? '' : ' --file -'
    return `${input}coffer ${operation} --url ${quote(origin)}${file}${named}`
  },
  Node: ({ origin, method, path, header, type, body }) => {
    const headers = [
      ...(header === undefined ? [] : [`'${header.toLowerCase()}': process.env.COFFER_API_KEY`]),
      ...(body === undefined ? [] : [`'content-type': ${JSON.stringify(type)}`]),
    ]
    const lines = [
      ...(method === 'GET' ? [] : [`method: ${JSON.stringify(method)},`]),
      ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} },`]),
      ...(body === undefined
        ? []
        : [`body: ${isJson(body) ? `JSON.stringify(${body})` : JSON.stringify(body)},`]),
    ]
    const url = JSON.stringify(origin + path)
    return `const answer = await fetch(${url}, {\n${indent(lines, '  ')}})\nconsole.log(answer.status, await answer.text())`
  },
  Python: ({ origin, method, path, header, type, body }) => {
    const headers = [
      ...(header === undefined ? [] : [`"${header}": os.environ["COFFER_API_KEY"]`]),
      ...(body === undefined ? [] : [`"Content-Type": ${JSON.stringify(type)}`]),
    ]
    const lines = [
      `${JSON.stringify(method)},`,
      `${JSON.stringify(origin + path)},`,
      `headers={${headers.join(', ')}},`,
      ...(body === undefined ? [] : [`data=${JSON.stringify(body)},`]),
    ]
    return `import os, requests\n\nanswer = requests.request(\n${indent(lines, '    ')})\nprint(answer.status_code, answer.text)`
  },
  Go: ({ origin, method, path, header, type, body }) => {
    const reader = body === undefined ? 'nil' : `strings.NewReader(${JSON.stringify(body)})`
    const headers = [
      ...(header === undefined ? [] : [`request.Header.Set("${header}", os.Getenv("COFFER_API_KEY"))`]),
      ...(body === undefined ? [] : [`request.Header.Set("Content-Type", ${JSON.stringify(type)})`]),
    ]
    return [
      `request, err := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(origin + path)}, ${reader})`,
      'if err != nil {\n\treturn err\n}',
      ...headers,
      'answer, err := http.DefaultClient.Do(request)',
    ].join('\n')
  },
}
