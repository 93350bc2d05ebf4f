package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostileBody is a body of about size bytes that becomes many maps where it is decoded
// into them.
func hostileBody(size int) string {
	const element = `{"":0},`
	return `{"username":[` + strings.Repeat(element, size/len(element)) + `0],"password":"p","domain":"d"}`
}

// hostileForm is a form of about size bytes with as many parameters as it can have.
func hostileForm(size int) string {
	var form strings.Builder
	for i := 0; form.Len() < size; i++ {
		fmt.Fprintf(&form, "%x&", i)
	}
	return form.String() + "Status=ringing"
}

const (
	jsonHeader = "Content-Type: application/json\r\n"
	formHeader = "Content-Type: application/x-www-form-urlencoded\r\nAuthorization: Basic QUMxOndyb25n\r\n"
)

// memoryInUse returns the bytes of the heap and the stacks, garbage included.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// attackers are connections that have sent all of a request but the last byte of its body.
type attackers struct {
	t     *testing.T
	conns []net.Conn
}

func (a *attackers) begin(address, method, path, headers, body string) {
	conn, err := net.Dial("tcp", address)
	must(a.t, err)
	a.t.Cleanup(func() { _ = conn.Close() })
	a.conns = append(a.conns, conn)
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", method, path, headers,
		len(body))
	must(a.t, err)

	// The server may have refused the request already.
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, body[:len(body)-1])
}

// finish sends the last byte on all connections, and counts the answers by status. A
// connection that the server closed counts as 0.
func (a *attackers) finish() map[int]int {
	for _, conn := range a.conns {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "}")
	}

	statuses := make(map[int]int)
	reader := bufio.NewReader(nil)
	for _, conn := range a.conns {
		reader.Reset(conn)
		status := 0
		if answer, err := http.ReadResponse(reader, nil); err == nil {
			status = answer.StatusCode
		}
		statuses[status]++
	}

	return statuses
}

// watchMemory reports how far memory grows until stop is called.
func watchMemory() (stop func() (growth uint64)) {
	runtime.GC()
	before, peak := memoryInUse(), uint64(0)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)

		for ctx.Err() == nil {
			peak = max(peak, memoryInUse())
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Millisecond): // between two samples
			}
		}
	}()

	return func() uint64 {
		cancel()
		<-ended
		return max(peak, before) - before
	}
}

// otherClient is a client with another address than the attackers have.
func otherClient() *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
}

// inOwnProcess runs the test again in a process of its own, and reports whether this is that process:
// what other tests left in the heap decides how much garbage the collector lets stand.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const mark = "TEST_OWN_PROCESS"
	if os.Getenv(mark) == t.Name() {
		return true
	}

	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), mark+"="+t.Name())
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("in its own process: %v\n%s", err, out)
	} else if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("it did not run in its own process:\n%s", out)
	}

	return false
}

// costOfConnections returns by how much a thousand requests with harmless bodies grow the
// memory: mostly the connections, of which both ends are in this process.
func costOfConnections(t *testing.T) uint64 {
	e := newEnv(t)
	server := httptest.NewServer(e.api)
	defer server.Close()

	growth := watchMemory()
	harmless := &attackers{t: t}
	for range 1000 {
		harmless.begin(server.Listener.Addr().String(), "POST", "/ucp/v2/login", jsonHeader, "{}")
	}

	harmless.finish()
	return growth()
}

// A thousand requests with bodies that were chosen for what they cost grow the memory by at
// most 64 MB more than their connections do, on every door that reads a body of strangers,
// and others are answered while these hold what they got.
func TestStrangersDoNotExhaustMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the other client needs the address 127.0.0.2")
	}
	if !inOwnProcess(t) {
		return
	}

	connections := costOfConnections(t)
	for _, door := range []struct{ method, path string }{
		{"POST", "/ucp/v2/login"},
		{"POST", "/ucp/v2/login/refresh"},
		{"POST", "/ucp/v2/otp"},
		{"PUT", "/ucp/v2/otp"},
		{"POST", channelPrefix + "/login"},
		{"POST", channelWSPrefix + "/login"},
		{"POST", "/api/v2/ingest/freeswitch"},
		{"PUT", "/ucp/v2/password"},
		{"POST", accountsPath},
		{"POST", "/2010-04-01/Accounts/AC1/Calls/CA1.json"},
	} {
		t.Run(door.method+door.path, func(t *testing.T) {
			e := newEnv(t)
			server := httptest.NewServer(e.api)
			defer server.Close()

			client := otherClient()
			defer client.CloseIdleConnections()

			headers, hostile := jsonHeader, hostileBody
			if strings.HasPrefix(door.path, "/2010-04-01/") {
				headers, hostile = formHeader, hostileForm
			}

			large, small := hostile(1_000_000), hostile(15<<10)

			growth := watchMemory()
			attack := &attackers{t: t}
			for i := range 1000 {
				body := small
				if i%4 == 0 {
					body = large
				}
				attack.begin(server.Listener.Addr().String(), door.method, door.path, headers, body)
			}

			answer, err := client.Post(server.URL+"/ucp/v2/login", "application/json",
				strings.NewReader(loginBody("alice")))
			must(t, err)
			_ = answer.Body.Close()
			statuses := attack.finish()
			grown := growth()
			t.Logf("%d MB, of the connections %d; answers: %v", grown>>20, connections>>20, statuses)

			if answer.StatusCode != http.StatusOK {
				t.Errorf("another client: %d", answer.StatusCode)
			}
			if statuses[http.StatusOK] > 0 || statuses[http.StatusInternalServerError] > 0 {
				t.Errorf("answers: %v", statuses)
			}
			if grown > connections+64<<20 {
				t.Errorf("memory grew by %d MB; answers: %v", grown>>20, statuses)
			}

			e.ask(http.StatusOK, "POST", "/ucp/v2/login", nil, loginBody("alice"), nil)
		})
	}
}
