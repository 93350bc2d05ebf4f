package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// page is one page in a headless Chromium, driven by the DevTools protocol.
type page struct {
	conn *websocket.Conn

	mu            sync.Mutex
	lastCommandID int                // id of the last command
	replies       map[int]chan reply // by id of their command
	sockets       []string           // URLs of the opened WebSockets
	pageErrors    []string           // uncaught exceptions, and violations of the content security policy
	trace         []traceEvent       // by busiest
	traceComplete chan struct{}      // closed when the trace is complete
}

// reply is the answer to a command.
type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// newPage starts a browser for the test.
func newPage(t *testing.T) *page {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		skipMissingTool(t, "chromium is not installed")
	}

	profile := t.TempDir()
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--force-color-profile=srgb", "--ignore-certificate-errors", "--remote-debugging-port=0",
		"--user-data-dir="+profile, "about:blank")
	browser, err := startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = syscall.Kill(-browser.process.Pid, syscall.SIGKILL) // including its child processes
		<-browser.exited
		_ = os.RemoveAll(filepath.Join(profile, "Default")) // a process that is still ending may write again
	})

	var debugger string
	eventually(t, "Chromium to listen", func() error {
		text, err := os.ReadFile(filepath.Join(profile, "DevToolsActivePort"))
		if err != nil {
			return err
		}

		var whole bool
		debugger, _, whole = strings.Cut(string(text), "\n")
		if !whole {
			return errors.New("its port is not written yet")
		}

		return nil
	})

	n := &node{url: "http://127.0.0.1:" + debugger, web: plainClient}
	var targets []struct {
		Type string
		URL  string `json:"webSocketDebuggerUrl"`
	}
	eventually(t, "Chromium to have a page", func() error {
		a, err := n.call(t.Context(), "GET", "/json", nil, "")
		if err == nil {
			err = json.Unmarshal(a.body, &targets)
		}

		for _, target := range targets {
			if target.Type == "page" {
				debugger = target.URL
				return nil
			}
		}

		return errors.Join(errors.New("none"), err)
	})

	p := &page{replies: map[int]chan reply{}}
	p.conn, _, err = websocket.DefaultDialer.Dial(debugger, nil)
	if err != nil {
		t.Fatal(err)
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		p.listen()
	}()

	t.Cleanup(func() {
		_ = p.conn.Close()
		<-done
	})

	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Accessibility"} {
		p.call(t, domain+".enable", nil, nil)
	}

	return p
}

func (p *page) listen() {
	for {
		var m struct {
			reply
			ID     int
			Method string
			Params json.RawMessage
		}
		if err := p.conn.ReadJSON(&m); err != nil {
			return
		}

		p.mu.Lock()
		switch {
		case m.Method == "":
			p.replies[m.ID] <- m.reply
			delete(p.replies, m.ID)
		case m.Method == "Network.webSocketCreated":
			var opened struct{ URL string }
			if json.Unmarshal(m.Params, &opened) == nil {
				p.sockets = append(p.sockets, opened.URL)
			}
		case m.Method == "Tracing.dataCollected":
			var collected struct{ Value []traceEvent }
			if json.Unmarshal(m.Params, &collected) == nil {
				p.trace = append(p.trace, collected.Value...)
			}
		case m.Method == "Tracing.tracingComplete":
			close(p.traceComplete)
		case m.Method == "Runtime.exceptionThrown",
			m.Method == "Log.entryAdded" && strings.Contains(string(m.Params), `"source":"security"`),
			m.Method == "Log.entryAdded" && strings.Contains(string(m.Params), "Content Security Policy"):
			p.pageErrors = append(p.pageErrors, string(m.Params))
		}
		p.mu.Unlock()
	}
}

// call sends a command, which must succeed, and waits for its result.
func (p *page) call(t testing.TB, method string, params map[string]any, result any) {
	t.Helper()
	if err := p.tryCall(method, params, result); err != nil {
		t.Fatal(err)
	}
}

// tryCall is call for a command that may fail because the page is being left.
func (p *page) tryCall(method string, params map[string]any, result any) error {
	answer := make(chan reply, 1)
	p.mu.Lock()
	p.lastCommandID++
	p.replies[p.lastCommandID] = answer
	err := p.conn.WriteJSON(map[string]any{"id": p.lastCommandID, "method": method, "params": params})
	p.mu.Unlock()

	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}

	select {
	case r := <-answer:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}

		if result != nil {
			if err := json.Unmarshal(r.Result, result); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
		}

		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s is not answered", method)
	}
}

// eval returns the value of an expression; it awaits promises.
func (p *page) eval(t testing.TB, expression string, to any) error {
	t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := p.tryCall("Runtime.evaluate",
		map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got); err != nil {
		return err
	}
	if e := got.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}

	if to == nil || got.Result.Value == nil {
		return nil
	}

	return json.Unmarshal(got.Result.Value, to)
}

// mustEval evaluates an expression, which must succeed.
func (p *page) mustEval(t testing.TB, expression string, to any) {
	t.Helper()
	if err := p.eval(t, expression, to); err != nil {
		t.Fatal(err)
	}
}

// awaitTrue waits until an expression is true.
func (p *page) awaitTrue(t testing.TB, what, expression string) {
	t.Helper()
	eventually(t, what, func() error {
		var yes bool
		if err := p.eval(t, "Boolean("+expression+")", &yes); err != nil || yes {
			return err
		}

		var seen string
		_ = p.eval(t, "document.body.innerText.slice(0, 600)", &seen)
		return fmt.Errorf("the page shows %q", seen)
	})
}

func (p *page) open(t testing.TB, url string) {
	t.Helper()
	p.call(t, "Page.navigate", map[string]any{"url": url}, nil)
	p.awaitTrue(t, url+" to be loaded",
		"document.readyState === 'complete' && location.href.startsWith("+jsString(url)+")")
}

// typeText types text into the focused element.
func (p *page) typeText(t testing.TB, text string) {
	t.Helper()
	p.call(t, "Input.insertText", map[string]any{"text": text}, nil)
}

var keyCodes = map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "Home": 36, "ArrowDown": 40}

// press presses and releases a key.
func (p *page) press(t testing.TB, key string) {
	t.Helper()
	params := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}
	if key == "Enter" {
		params["text"] = "\r"
	}
	p.call(t, "Input.dispatchKeyEvent", params, nil)
	p.call(t, "Input.dispatchKeyEvent",
		map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}, nil)
}

// screenshot takes a screenshot if the variable TRUNKLINE_SCREENSHOTS names a folder for it.
func (p *page) screenshot(t testing.TB, name string, width, height int, scheme string) {
	t.Helper()
	folder := os.Getenv("TRUNKLINE_SCREENSHOTS")
	if folder == "" {
		return
	}

	p.call(t, "Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	p.call(t, "Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	p.mustEval(t, "new Promise((done) => setTimeout(done, 700))", nil)
	var shot struct{ Data string }
	p.call(t, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkPage fails the test if the page had errors.
func (p *page) checkPage(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.pageErrors {
		t.Errorf("in the page: %s", one)
	}
}

// axePackage returns the source of axe-core, which finds violations of WCAG.
var axePackage = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "axe")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := install(dir, "npm install --no-save --no-audit --no-fund --prefer-offline axe-core@4.14.1"); err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

// checkAccess fails the test where the page violates WCAG 2.2 AA, has a control without a name,
// or is wider than its window.
func (p *page) checkAccess(t testing.TB, what string) {
	t.Helper()
	source, err := axePackage()
	if err != nil {
		t.Fatal(err)
	}

	p.mustEval(t, source+"; void 0", nil)
	var violations []string
	p.mustEval(t, `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then(({ violations }) =>
		violations.map(({ id, help, nodes }) => id + ": " + help + ": " + nodes.map(({ target, failureSummary }) => target + " " + failureSummary).join("; ").slice(0, 600)))`,
		&violations)

	for _, one := range violations {
		t.Errorf("%s: %s", what, one)
	}

	controls, bad := p.unnamedControls(t)
	if len(bad) > 0 || controls == 0 {
		t.Errorf("%s: of %d controls these have no name: %v", what, controls, bad)
	}

	var wide bool
	p.mustEval(t, "document.documentElement.scrollWidth > innerWidth", &wide)
	if wide {
		t.Errorf("%s: wider than its window", what)
	}
}

// unnamedControls returns the controls without an accessible name.
func (p *page) unnamedControls(t testing.TB) (controls int, bad []string) {
	t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			BackendID  int `json:"backendDOMNodeId"`
		}
	}
	p.call(t, "Accessibility.getFullAXTree", nil, &tree)

	for _, n := range tree.Nodes {
		role, _ := n.Role.Value.(string)
		switch role {
		case "button", "link", "textbox", "searchbox", "combobox", "checkbox", "dialog", "navigation", "region",
			"DateTime", "table", "search":
		default:
			continue
		}

		if n.Ignored {
			continue
		}

		controls++
		if name, _ := n.Name.Value.(string); strings.TrimSpace(name) == "" && role != "table" {
			bad = append(bad, fmt.Sprintf("%s (node %d)", role, n.BackendID))
		}
	}

	return controls, bad
}

func jsString(text string) string {
	data, _ := json.Marshal(text) // a string always marshals
	return string(data)
}

var plainClient = &http.Client{}
