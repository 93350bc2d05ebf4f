// A server for trying pages: it serves the files of this folder and forwards requests of /api and
// /ws to Trunkline, so that a page and the channel have the same origin.
//
//   NODE_EXTRA_CA_CERTS=data/tls/cert.pem node serve.mjs https://localhost:9443 8000
import { createReadStream } from "node:fs";
import http from "node:http";
import https from "node:https";
import { basename, extname } from "node:path";
import { fileURLToPath } from "node:url";

const [target = "https://localhost:9443", port = "8000"] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript" };

function forward(request, response) {
  const { request: send } = target.startsWith("https:") ? https : http;
  const headers = { ...request.headers, host: new URL(target).host };
  const onward = send(new URL(request.url, target), { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers).flushHeaders(); // a stream may be without events for a long time
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  onward.on("error", (error) => {
    if (response.headersSent) return response.destroy();
    response.writeHead(502, { "Content-Type": "application/json" }).end(JSON.stringify({ success: false, message: error.message }));
  });
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

http.createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (/^\/(api|ws|ucp)\//.test(pathname)) return forward(request, response);
  const file = basename(pathname) || "wallboard.html";
  const type = types[extname(file)];
  const notFound = () => response.writeHead(404).end();
  if (!type) return notFound();
  createReadStream(fileURLToPath(new URL(file, import.meta.url)))
    .on("open", function () { this.pipe(response.writeHead(200, { "Content-Type": type, "Cache-Control": "no-store" })); })
    .on("error", notFound);
}).listen(Number(port), "127.0.0.1", () => console.log(`http://localhost:${port}/wallboard.html`));
