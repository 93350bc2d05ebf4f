// Package conformance runs one program per client library, a driver, and records its output, so
// that one behaviour suite covers all libraries: its own tests against a scripted server, and
// those of e2e against the built program.
//
// A driver reads a line with Settings from stdin, subscribes, and prints a Line for every item,
// for every change of the connection, and for its end. Further lines on stdin are commands:
// {"do":"resume"} continues after PauseAt, {"do":"stop"} ends the driver.
package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Settings holds the parameters of a driver's subscription.
type Settings struct {
	URL         string              `json:"url"`
	CA          string              `json:"ca,omitempty"` // PEM file; Node reads NODE_EXTRA_CA_CERTS
	Username    string              `json:"username,omitempty"`
	Password    string              `json:"password,omitempty"`
	Domain      string              `json:"domain,omitempty"`
	PortalToken string              `json:"portal_token,omitempty"`
	APIKey      string              `json:"api_key,omitempty"`
	Since       string              `json:"since,omitempty"`
	Snapshot    bool                `json:"snapshot,omitempty"`
	Filters     map[string][]string `json:"filters,omitempty"`
	Store       string              `json:"store,omitempty"` // file
	RetryMin    int                 `json:"retry_min_ms,omitempty"`
	RetryMax    int                 `json:"retry_max_ms,omitempty"`
	Silence     int                 `json:"silence_ms,omitempty"`
	PauseAt     string              `json:"pause_at,omitempty"` // event id: stop reading items there until "resume"
}

// Line is one line of a driver's output.
type Line struct {
	Kind    string          `json:"kind"` // snapshot, event, status or end
	ID      string          `json:"id,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`
	Facts   json.RawMessage `json:"facts,omitempty"`
	Agents  []string        `json:"agents,omitempty"`
	State   string          `json:"state,omitempty"` // connected or waiting
	RetryIn float64         `json:"retry_in_ms,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Error is an error of a client library.
type Error struct {
	Name      string `json:"name"`
	Message   string `json:"message"`
	Permanent bool   `json:"permanent"`
	Code      int    `json:"code"`
	Status    int    `json:"status"`
}

// Driver is a running driver.
type Driver struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	stderr strings.Builder
	exited chan struct{}

	mu      sync.Mutex
	printed []Line     // so far
	changed *sync.Cond // broadcast at each line, and when Await has taken too long
}

// Languages are the languages that have a client library.
var Languages = []string{"js", "python", "go"}

// Command returns the driver of a language, nil if its tools are not installed. folder is this
// package's directory, goDriver the built program of drivers/driver_go.
func Command(language, folder, goDriver string) *exec.Cmd {
	switch language {
	case "js":
		node, err := exec.LookPath("node")
		if err == nil {
			return exec.Command(node, filepath.Join(folder, "drivers/driver.mjs"))
		}
	case "python":
		// Debian's packages are installed for its own python3 only
		for _, name := range []string{"python3", "/usr/bin/python3"} {
			if exec.Command(name, "-c", "import aiohttp").Run() == nil {
				return exec.Command(name, filepath.Join(folder, "drivers/driver.py"))
			}
		}
	case "go":
		return exec.Command(goDriver)
	}

	return nil
}

// Start starts a driver with the settings. Close ends it.
func Start(cmd *exec.Cmd, s Settings) (*Driver, error) {
	d := &Driver{cmd: cmd, exited: make(chan struct{})}
	d.changed = sync.NewCond(&d.mu)
	var err error
	d.input, err = cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the driver's input: %w", err)
	}

	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the driver's output: %w", err)
	}

	cmd.Stderr = &d.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the driver: %w", err)
	}

	go d.read(output)
	return d, d.write(s)
}

func (d *Driver) read(output io.Reader) {
	defer close(d.exited)

	scanner := bufio.NewScanner(output)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var line Line
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			line = Line{Kind: "end", Error: &Error{Name: "Driver", Message: scanner.Text()}}
		}
		d.add(line)
	}

	_ = d.cmd.Wait() // its last line has the reason of its end
	d.mu.Lock()
	ended := len(d.printed) > 0 && d.printed[len(d.printed)-1].Kind == "end"
	d.mu.Unlock()

	if !ended {
		d.add(Line{Kind: "end", Error: &Error{Name: "Driver", Message: "it ended early: " + d.stderr.String()}})
	}
}

func (d *Driver) add(line Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.printed = append(d.printed, line)
	d.changed.Broadcast()
}

func (d *Driver) write(line any) error {
	if err := json.NewEncoder(d.input).Encode(line); err != nil {
		return fmt.Errorf("writing to the driver: %w", err)
	}
	return nil
}

// Do sends a command: resume or stop.
func (d *Driver) Do(command string) error { return d.write(map[string]string{"do": command}) }

// Close kills the driver, as kill -9 does.
func (d *Driver) Close() {
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.exited
}

// Lines returns the lines printed so far.
func (d *Driver) Lines() []Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.printed)
}

// Await waits until enough returns true for the lines. It returns them, and an error if the
// driver ends or the limit passes first.
func (d *Driver) Await(limit time.Duration, enough func([]Line) bool) ([]Line, error) {
	late := false
	timer := time.AfterFunc(limit, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		late = true
		d.changed.Broadcast()
	})
	defer timer.Stop()

	d.mu.Lock()
	defer d.mu.Unlock()

	for !enough(d.printed) {
		if late || len(d.printed) > 0 && d.printed[len(d.printed)-1].Kind == "end" {
			text, _ := json.Marshal(d.printed[max(0, len(d.printed)-5):]) // lines always marshal
			return slices.Clone(d.printed),
				fmt.Errorf("not seen after %d lines (timed out: %t); the last are %s", len(d.printed), late, text)
		}
		d.changed.Wait()
	}

	return slices.Clone(d.printed), nil
}

// Of returns the lines of a kind.
func Of(lines []Line, kind string) (these []Line) {
	for _, line := range lines {
		if line.Kind == kind {
			these = append(these, line)
		}
	}
	return these
}

// IDs returns the ids of the events.
func IDs(lines []Line) (ids []string) {
	for _, line := range Of(lines, "event") {
		ids = append(ids, line.ID)
	}
	return ids
}
