/** Formats requests as sample code that reads the API key from the environment. */
export interface Call {
  method: string
  path: string
  header: string
  type?: string | undefined
  body?: string | undefined
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const indent = (lines: string[], by: string) => lines.map((line) => `${by}${line}\n`).join('')

export const LANGUAGES: Record<string, (call: Call) => string> = {
  curl: ({ method, path, header, type, body }) =>
    [
      `curl ${method === 'GET' ? '' : `-X ${method} `}${quote(location.origin + path)}`,
      `-H "${header}: $COFFER_API_KEY"`,
      ...(body === undefined ? [] : [`-H 'Content-Type: ${type}'`, `-d ${quote(body)}`]),
    ].join(' \\\n  '),
  Node: ({ method, path, header, type, body }) => {
    const headers = `'${header.toLowerCase()}': process.env.COFFER_API_KEY${body === undefined ? '' : `, 'content-type': '${type}'`}`
    const lines = [
      ...(method === 'GET' ? [] : [`method: '${method}',`]),
      `headers: { ${headers} },`,
      ...(body === undefined ? [] : [`body: JSON.stringify(${body}),`]),
    ]
    const url = JSON.stringify(location.origin + path)
    return `const answer = await fetch(${url}, {\n${indent(lines, '  ')}})\nconsole.log(answer.status, await answer.text())`
  },
  Python: ({ method, path, header, type, body }) => {
    const about = body === undefined ? '' : `, "Content-Type": "${type}"`
    const lines = [
      `"${method}",`,
      `${JSON.stringify(location.origin + path)},`,
      `headers={"${header}": os.environ["COFFER_API_KEY"]${about}},`,
      ...(body === undefined ? [] : [`data=${JSON.stringify(body)},`]),
    ]
    return `import os, requests\n\nanswer = requests.request(\n${indent(lines, '    ')})\nprint(answer.status_code, answer.text)`
  },
  Go: ({ method, path, header, type, body }) => {
    const reader = body === undefined ? 'nil' : `strings.NewReader(${JSON.stringify(body)})`
    const headers = [
      `request.Header.Set("${header}", os.Getenv("COFFER_API_KEY"))`,
      ...(body === undefined ? [] : [`request.Header.Set("Content-Type", "${type}")`]),
    ]
    return [
      `request, err := http.NewRequest("${method}", ${JSON.stringify(location.origin + path)}, ${reader})`,
      'if err != nil {\n\treturn err\n}',
      ...headers,
      'answer, err := http.DefaultClient.Do(request)',
    ].join('\n')
  },
}
