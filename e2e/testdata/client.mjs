// A subscriber of the events channel: logs in, prints every event, and after a
// break comes back where it was.
//
//   npm install ws
//   NODE_EXTRA_CA_CERTS=data/tls/cert.pem TRUNKLINE_PASSWORD=... \
//     node client.mjs https://127.0.0.1:9443 alice demo.local
import WebSocket from 'ws'

const [base, username, domain] = process.argv.slice(2)
let token, since

async function login() {
  const answer = await fetch(base + '/api/v2/cc_events_channel/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username, domain, password: process.env.TRUNKLINE_PASSWORD }),
  })
  if (!answer.ok) throw new Error(`login: ${answer.status} ${await answer.text()}`)
  token = (await answer.json()).access_token
}

function connect() {
  const url = new URL('/ws/v1/cc_events', base.replace(/^http/, 'ws'))
  if (since) url.searchParams.set('since', since)
  const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` } })
  socket.on('open', () => console.error('connected'))
  socket.on('message', (text) => {
    console.log(text.toString())
    since = JSON.parse(text).id
  })
  socket.on('error', (error) => console.error(error.message)) // close follows
  socket.on('close', (code, reason) => {
    console.error(`closed: ${code} ${reason}`)
    setTimeout(connect, 200 + Math.random() * 300)
  })
}

await login()
connect()
