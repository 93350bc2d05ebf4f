package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/internal/freeport"
	"trunkline/telephony/sip/siptest"
)

// platformCase is a driver of click to call with a platform that takes every call, and the records
// that the platform writes of the call's legs.
type platformCase struct {
	settings func(t *testing.T) []string // names and values in turn
	format   string                      // of records
	// records returns the platform's records of the call with the id, a line each; nil: the driver makes them itself.
	records func(t *testing.T, id string) string
	// answer registers phones that answer; nil: the platform has them.
	answer func(t *testing.T, n *node) (hangUp func())
	found  string // what the client prints of the destination's row
}

// platformCases are by the setting origination.driver.
var platformCases = map[string]platformCase{
	"auto": {
		settings: func(*testing.T) []string { return nil },
		found:    `["1002", "outbound", "NORMAL_CLEARING"]`,
	},
	"sip": {
		settings: func(t *testing.T) []string { return []string{"TRUNKLINE_SIP_LISTEN", freeport.Address(t)} },
		answer: func(t *testing.T, n *node) func() {
			alice, bob := n.simplePhone(t, "alice", "1001"), n.simplePhone(t, "bob", "1002")
			return func() {
				caller, called := alice.WaitCall(), bob.WaitCall()
				called.WaitAck()
				called.Bye()
				caller.WaitBye()
			}
		},
		found: `["1002", "outbound", "NORMAL_CLEARING"]`,
	},
	"freeswitch": {
		settings: func(t *testing.T) []string {
			return []string{"TRUNKLINE_ORIGINATION_FREESWITCH_ADDRESS", listen(t, serveEventSocket),
				"TRUNKLINE_ORIGINATION_FREESWITCH_PASSWORD", switchPassword}
		},
		format: "freeswitch.json_cdr",
		records: func(t *testing.T, id string) string {
			text := readFile(t, "../format/freeswitch/testdata/freeswitch.json_cdr/c2c-nobowout.in.jsonl")
			text = strings.ReplaceAll(text, "oc-38935054-8f29-47aa-959d-5d073dec3c8e", id)
			return strings.ReplaceAll(text, `"variables":{`, `"variables":{"sip_h_X-svc_call_type":"clicktocall",`)
		},
		found: `["1002", "outbound", "NORMAL_CLEARING"]`,
	},
	"asterisk": {
		settings: func(t *testing.T) []string {
			return []string{"TRUNKLINE_ORIGINATION_ASTERISK_ADDRESS", listen(t, serveManager),
				"TRUNKLINE_ORIGINATION_ASTERISK_USERNAME", "trunkline",
				"TRUNKLINE_ORIGINATION_ASTERISK_SECRET", switchPassword}
		},
		format: "asterisk.cdr",
		records: func(t *testing.T, id string) string {
			var mine []string
			for _, line := range lines(readFile(t, "../format/asterisk/testdata/asterisk.cdr/vocabulary.in.jsonl")) {
				if strings.Contains(line, "0d3f5c1e-6b0a-4f8e-9c57-7a1100000018") {
					mine = append(mine, strings.ReplaceAll(line, "0d3f5c1e-6b0a-4f8e-9c57-7a1100000018", id))
				}
			}
			return strings.Join(mine, "\n")
		},
		found: `["1002", "outbound", "NORMAL_CLEARING"]`,
	},
	"kazoo": {
		settings: func(t *testing.T) []string {
			crossbar := httptest.NewServer(http.HandlerFunc(serveCrossbar))
			t.Cleanup(crossbar.Close)
			return []string{"TRUNKLINE_ORIGINATION_KAZOO_URL", crossbar.URL, "TRUNKLINE_ORIGINATION_KAZOO_API_KEY",
				"the key", "TRUNKLINE_ORIGINATION_KAZOO_ACCOUNTS", "demo=kz1"}
		},
		format: "kazoo.cdr",
		records: func(t *testing.T, id string) string {
			line := lines(readFile(t, "../format/kazoo/testdata/kazoo.cdr/records.in.jsonl"))[0]
			return strings.NewReplacer("c2c-1-0123456789", id, `"acme"`, `"demo"`).Replace(line)
		},
		found: `["+15551230001@r", "outbound", "NORMAL_CLEARING"]`,
	},
}

var (
	unixTimes      = regexp.MustCompile(`\b1795[0-9]{6}`)
	gregorianTimes = regexp.MustCompile(`\b6396238[0-9]{4}`)
	writtenTimes   = regexp.MustCompile(`2026-11-22 11:56:([0-9]{2})`)
)

// asOfNow returns captured records as if they had been written now.
func asOfNow(records string) string {
	now := time.Now().UTC()
	records = unixTimes.ReplaceAllString(records, strconv.FormatInt(now.Unix(), 10))
	records = gregorianTimes.ReplaceAllString(records, strconv.FormatInt(now.Unix()+62167219200, 10))
	return writtenTimes.ReplaceAllString(records, now.Format("2006-01-02 15:04:")+"$1")
}

// callEvents are captured stories of calls in queues, by format, and the account in them.
var callEvents = []struct{ format, file string }{
	{"freeswitch.callcenter", "../format/freeswitch/testdata/freeswitch.callcenter/captured"},
	{"asterisk.ami", "../format/asterisk/testdata/asterisk.ami/queue-answered"},
	{"kazoo.acdc", "../format/kazoo/testdata/kazoo.acdc/answered"},
}

// TestAClientOfTheSpecificationAlone runs a client that is written from specification.md with each
// driver: it reads the call events of all platforms by the specified members, places a call and
// finds it.
func TestAClientOfTheSpecificationAlone(t *testing.T) {
	t.Parallel()
	python := filepath.Join(pythonFolder(t), "bin", "python")
	for driver, s := range platformCases {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			c := embeddedCluster(t, append(s.settings(t), "TRUNKLINE_ORIGINATION_DRIVER", driver)...)
			n := c.nodes[0]
			hangUp := func() {}

			if s.answer != nil {
				hangUp = s.answer(t, n)
			}

			expected := 0
			for _, e := range callEvents {
				expected += strings.Count(readFile(t, e.file+".want.jsonl"), `"type":"svc_cc_queue_on_call_event"`)
			}

			f := startForeign(t, nil, python, "testdata/specification_client.py", n.url,
				filepath.Join(n.dir, "tls", "cert.pem"),
				"alice", password, "demo.local", "1002", strconv.Itoa(expected))
			f.await(t, "to be connected", func(out, _ []string) bool { return slices.Contains(out, "ready") })

			for _, e := range callEvents {
				story := strings.ReplaceAll(readFile(t, e.file+".in.jsonl"), `"Account-ID": "acme"`,
					`"Account-ID": "demo"`)
				c.ingestNode.postAccepted(t, c.key, e.format, "application/x-ndjson", story, len(lines(story)))
			}

			var id string
			f.await(t, "to place a call", func(out, _ []string) bool {
				for _, line := range out {
					if rest, ok := strings.CutPrefix(line, "placed "); ok {
						id = rest
					}
				}
				return id != ""
			})

			hangUp()
			if s.records != nil {
				records := asOfNow(s.records(t, id))
				c.ingestNode.postAccepted(t, c.key, s.format, "application/x-ndjson", records, len(lines(records)))
			}

			f.await(t, "to find the call", func(out, _ []string) bool { return slices.Contains(out, "found "+s.found) })
			checkEventsRead(t, f.out.completeLines())
		})
	}
}

// TestAClientGeneratedFromTheSchema makes TypeScript's types of the published schema of call events, compiles a
// client against the messages of all platforms with them, and has it read the specified members.
func TestAClientGeneratedFromTheSchema(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	tool(t, "npm")
	packages, dir := installed(t, typeScriptPackages), t.TempDir()
	var schema struct {
		Defs struct{ Data json.RawMessage } `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "../api/schemas/call_event.json")), &schema); err != nil {
		t.Fatal(err)
	}

	var messages, told []string
	for _, e := range callEvents { // with the source's own members
		for _, line := range lines(readFile(t, e.file+".want.jsonl")) {
			if strings.Contains(line, `"type":"svc_cc_queue_on_call_event"`) {
				messages = append(messages, line)
			}
		}
	}

	stories, err := filepath.Glob("../normalizer/testdata/stories/*.want.jsonl") // with what came before
	if err != nil || len(stories) < len(callEvents) {
		t.Fatalf("%d stories, %v", len(stories), err)
	}

	for _, story := range stories {
		told = append(told, lines(readFile(t, story))...)
	}

	program := `import type { CallData } from "./call_data.js";
const messages: { data: CallData; [other: string]: unknown }[] = [` + strings.Join(messages, ",\n") + `];
const told: CallData[] = [` + strings.Join(told, ",\n") + `];
for (const data of [...messages.map((one) => one.data), ...told]) {
	const agent = data.history.findLast((step) => step.type === "agent");
	const read: [string, string, string, string] = [data["Queue-ID"], data.CDR.Event, data.customer_info.customer_callerid_number, agent?.ext ?? ""];
	console.log("event " + JSON.stringify(read).replaceAll(",", ", "));
}
`

	for name, text := range map[string]string{"CallData.json": string(schema.Defs.Data), "client.mts": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}

		return string(output)
	}

	modules := filepath.Join(packages, "node_modules")
	run(filepath.Join(modules, "json-schema-to-typescript", "dist", "src", "cli.js"), "--maxItems=-1", "CallData.json",
		"call_data.d.ts")
	run(filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--target", "es2023", "--lib", "es2023,dom",
		"--module", "nodenext", "client.mts")
	checkEventsRead(t, lines(run("client.mjs")))
}

// checkEventsRead checks what the client has read of the call that was answered on each platform.
func checkEventsRead(t *testing.T, out []string) {
	t.Helper()
	for _, want := range []string{
		`event ["support@127.0.0.20", "queue.call_answered", "1001-0x561097de0130", "1002"]`,
		`event ["acme-support", "queue.call_answered", "5551001", "agent1"]`,
		`event ["q-1", "queue.call_answered", "+15551230001", "a-1"]`,
	} {
		if !slices.Contains(out, want) {
			t.Errorf("the client has not read %s:\n%s", want, strings.Join(out, "\n"))
		}
	}
}

// simplePhone is a registered phone of a user that answers by itself.
func (n *node) simplePhone(t *testing.T, username, extension string) *siptest.Phone {
	t.Helper()
	secret := strings.TrimSpace(n.cli(t, "user", "device", "create", username, "--account", "demo"))
	p := siptest.NewPhone(t, n.settings["TRUNKLINE_SIP_LISTEN"], extension, "demo.local", secret)
	if r := p.Register(300); r.StatusCode != http.StatusOK {
		t.Fatalf("registering %s: %d", extension, r.StatusCode)
	}
	return p
}

// listen accepts connections and returns the address.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}

			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()

	return l.Addr().String()
}

// blocks calls handle with each block of lines that an empty one ends.
func blocks(conn net.Conn, handle func(lines []string)) {
	var block []string
	in := bufio.NewScanner(conn)
	for in.Scan() {
		switch line := strings.TrimSuffix(in.Text(), "\r"); {
		case line != "":
			block = append(block, line)
		case len(block) > 0:
			handle(block)
			block = nil
		}
	}
}

// serveEventSocket is a FreeSWITCH that knows every user and takes every call.
func serveEventSocket(conn net.Conn) {
	_, _ = io.WriteString(conn, "Content-Type: auth/request\n\n")
	blocks(conn, func(command []string) {
		verb, rest, _ := strings.Cut(command[0], " ")
		text := "+OK"
		switch {
		case verb == "bgapi":
			job := strings.TrimPrefix(command[len(command)-1], "Job-UUID: ")
			fmt.Fprintf(conn, "Content-Type: command/reply\nReply-Text: +OK Job-UUID: %s\nJob-UUID: %s\n\n", job, job)
			return
		case verb != "api":
			_, _ = io.WriteString(conn, "Content-Type: command/reply\nReply-Text: +OK accepted\n\n")
			return
		case rest == "status":
			text = "UP 0 years\nFreeSWITCH is ready\n0 session(s) per Sec out of max 1000, peak 4, last 5min 4\n"
		case strings.HasPrefix(rest, "show channels"):
			text = `{"row_count":0}`
		case strings.HasPrefix(rest, "user_exists"):
			text = "true"
		case strings.HasPrefix(rest, "uuid_exists"):
			text = "false"
		}

		fmt.Fprintf(conn, "Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text)
	})
}

// serveManager is an Asterisk that takes every call.
func serveManager(conn net.Conn) {
	_, _ = io.WriteString(conn, "Asterisk Call Manager/13.0.0\r\n")
	blocks(conn, func(action []string) {
		get := func(key string) string {
			for _, line := range action {
				if name, value, _ := strings.Cut(line, ": "); name == key {
					return value
				}
			}
			return ""
		}

		fmt.Fprintf(conn, "Response: Success\r\nActionID: %s\r\nMessage: OK\r\n\r\n", get("ActionID"))
		if get("Action") == "CoreShowChannels" {
			fmt.Fprintf(conn,
				"Event: CoreShowChannelsComplete\r\nActionID: %s\r\nEventList: Complete\r\nListItems: 0\r\n\r\n",
				get("ActionID"))
		}
	})
}

// serveCrossbar is a Kazoo that takes every call.
func serveCrossbar(w http.ResponseWriter, r *http.Request) {
	status, answer := http.StatusOK, `{"data":[]}`
	switch {
	case strings.HasSuffix(r.URL.Path, "/api_auth"):
		status, answer = http.StatusCreated, `{"auth_token":"t","data":{"account_id":"kz0"}}`
	case r.Method == http.MethodPut:
		status, answer = http.StatusCreated, `{"data":{"id":"c1"},"status":"success"}`
	case strings.HasSuffix(r.URL.Path, "/connect"):
		status, answer = http.StatusAccepted, `{"data":{"origination_call_id":"kz-origination-1","outbound_call_id":"b1","call_id":"l1"}}`
	}

	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}
