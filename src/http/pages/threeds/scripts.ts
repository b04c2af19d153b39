/**
 * The scripts of the pages. The scripts are constant, because the content security policy contains their digests.
 * Values are in `data` elements. Messages contain no secret, and have the target `*`, because the page under test can
 * have any origin.
 */

/**
 * Sends a message to the page around this frame, or to the page that opened this window, and then closes the window.
 */
export const TELL = `
const message = JSON.parse(document.getElementById('message').value)
if (window.parent !== window) window.parent.postMessage(message, '*')
else if (window.opener) {
  window.opener.postMessage(message, '*')
  if (message.isCompleted) window.close()
}
`

export const CLOSE = `
window.close()
`

export const SEND = `
document.getElementById('form').submit()
`

/**
 * After one message from the page of the shop, posts a form into a frame, and passes messages from this frame on to the
 * shop. Ignores further requests to start, and requests from other pages.
 */
function relay({
  start,
  url,
  data,
  field,
  frame,
  passes,
}: Record<'start' | 'url' | 'data' | 'field' | 'frame' | 'passes', string>) {
  return `
const passed = ${passes}
let frame
addEventListener('message', ({ source, data }) => {
  if (typeof data !== 'object' || data === null) return
  if (source === window.parent && data.type === '${start}' && frame === undefined) begin(data)
  else if (frame !== undefined && source === frame.contentWindow && passed.includes(data.type))
    window.parent.postMessage(data, '*')
})
function begin({ ${url}: url, ${data}: content }) {
  if (!/^https?:[/][/]/i.test(url) || typeof content !== 'string') {
    window.parent.postMessage({ type: 'error', isCompleted: false, id: '', details: '${url} or ${data} is missing in the message' }, '*')
    return
  }
  frame = document.createElement('iframe')
  Object.assign(frame, { ${frame} })
  const form = document.createElement('form')
  Object.assign(form, { action: url, method: 'POST', target: frame.name })
  const input = document.createElement('input')
  Object.assign(input, { type: 'hidden', name: '${field}', value: content })
  form.append(input)
  document.body.append(frame, form)
  form.submit()
}
`
}

export const METHOD_FRAME = relay({
  start: 'startMethod',
  url: 'threeDSMethodURL',
  data: 'threeDSMethodData',
  field: 'threeDSMethodData',
  frame: "name: 'acsMethodIframe', title: 'Test bank: browser data', hidden: true",
  passes: "['method']",
})

export const CHALLENGE_FRAME = relay({
  start: 'startChallenge',
  url: 'acsURL',
  data: 'creq',
  field: 'creq',
  frame: "name: 'acsChallengeIframe', title: 'Test bank: challenge'",
  passes: "['challenge', 'error']",
})

/** Waits up to 10 s for the method step. Then describes the browser, as the program of a shop would. */
export const REDIRECT_START = `
const form = document.getElementById('form')
const method = document.getElementById('method')
const isDone = new Promise((resolve) => {
  if (method === null) return resolve()
  setTimeout(resolve, 10000)
  addEventListener('message', ({ source, data }) => {
    if (source === document.querySelector('iframe').contentWindow && data?.type === 'method') resolve()
  })
  method.submit()
})
isDone.then(() => {
  form.elements.device_info.value = JSON.stringify({
    browser_javascript_enabled: true,
    browser_java_enabled: false,
    browser_language: navigator.language,
    browser_color_depth: String(screen.colorDepth),
    browser_screen_height: String(screen.height),
    browser_screen_width: String(screen.width),
    browser_tz: String(new Date().getTimezoneOffset()),
    browser_user_agent: navigator.userAgent,
  })
  form.submit()
})
`

export const REDIRECT_CHALLENGE = `
addEventListener('message', ({ source, data }) => {
  if (source === document.querySelector('iframe').contentWindow && ['challenge', 'error'].includes(data?.type))
    document.getElementById('form').submit()
})
document.getElementById('challenge').submit()
`

export const REDIRECT_END = `
const { url } = JSON.parse(document.getElementById('end').value)
setTimeout(() => location.replace(url), 1000)
`
