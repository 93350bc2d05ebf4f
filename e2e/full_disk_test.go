package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inMountNamespace runs the calling test again in a new mount namespace and reports whether this is
// that run: its mounts end with it.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	const mark = "TEST_MOUNTS"
	if os.Getenv(mark) == t.Name() {
		return true
	}

	tool(t, "unshare")
	flags := []string{"-m"}
	if os.Getuid() != 0 {
		flags = []string{"-rm"}
	}

	try := append(flags, "mount", "-t", "tmpfs", "none", "/mnt")
	if out, err := exec.Command("unshare", try...).CombinedOutput(); err != nil {
		skipMissingTool(t, "no mount namespace can be made: "+string(out))
	}

	again := exec.Command("unshare",
		append(flags, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=20m")...)
	again.Env = append(os.Environ(), mark+"="+t.Name(), programFolder+"="+filepath.Dir(program(t)))
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("on its own mounts: %v\n%s", err, out)
	} else if !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("it did not run on its own mounts:\n%s", out)
	}

	return false
}

// smallDisk mounts a file system of the given size in MiB.
func smallDisk(t *testing.T, mebibytes int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mebibytes)); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})

	return dir
}

// fillDisk writes until the disk is full and then frees left bytes, so that some writes succeed and
// others are cut short.
func fillDisk(t *testing.T, dir string, left int64) (empty func()) {
	t.Helper()
	name := filepath.Join(dir, "fill")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	block := make([]byte, 64<<10)
	var size int64
	for {
		n, err := f.Write(block)
		size += int64(n)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	if err := f.Truncate(size - left); err != nil {
		t.Fatal(err)
	}

	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk runs a server whose data directory is on a disk that is filled under load and
// emptied, twice. All acknowledged records must be there afterwards, also after a kill and a
// restart.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if !inMountNamespace(t) {
		return
	}

	p := readMessageTable(t)
	disk := smallDisk(t, 64)
	n := newNode(t, "small disk", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_DATA_DIR": filepath.Join(disk, "data"),
		"TRUNKLINE_INGEST_PRODUCE_TIMEOUT": "5s",
	})
	c := newCluster(t, nil, "", n)
	token := n.login(t, apiPaths, user("alice"))
	stays := n.subscribe(t, subscription{paths: apiPaths, token: token})
	load := startPosters(t,
		&poster{name: "p", account: "demo", key: c.key, node: n, every: 20 * time.Millisecond},
		&poster{name: "q", account: "demo", key: c.key, node: n, every: 20 * time.Millisecond})
	load.awaitMore(t, 20)

	fullMessage := p.row(t, "the disk is full: free space")
	sound := strings.Repeat("audio ", 200<<10)
	record := func(id, body string) answer {
		return n.mustCall(t, http.MethodPut, "/api/v2/recordings/"+id, map[string]string{"X-API-Key": c.key}, body)
	}
	stored := map[string]bool{}

	for round, left := range []int64{0, 200 << 10} {
		empty := fillDisk(t, disk, left)
		for what, try := range map[string]func() answer{
			"a body": func() answer {
				return n.post(t, c.key, "svc.cc", typeJSON,
					`{"Account-ID":"demo","Type":"AGENT_LOGIN","poster":"one","n":1,"pad":"`+strings.Repeat("x",
						300<<10)+`"}`)
			},
			"a login":     func() answer { return n.tryPortalLogin(t) },
			"a recording": func() answer { return record(fmt.Sprintf("refused-%d", round), sound) },
		} {
			if left > 0 && what == "a login" {
				continue // a small write may still succeed
			}

			eventually(t, what+" to be refused", func() error {
				if a := try(); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
					return fmt.Errorf("%s", a)
				}
				return nil
			})
		}

		n.awaitMessage(t, fullMessage)
		if left == 0 {
			eventually(t, "what the database lacks", func() error {
				n.tryPortalLogin(t)
				if p.row(t, "database or disk is full").countMatches(readFile(t, n.log)) == 0 {
					return errors.New("not logged")
				}
				return nil
			})
		}

		eventually(t, "the metric",
			func() error { return n.checkMetric(`trunkline_dependency_up{dependency="disk"}`, "0") })
		if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusOK {
			t.Errorf("/readyz on a full disk: %d %s %v", status, text, err)
		}
		if h := n.health(t, apiPaths); h.Total != 1 {
			t.Errorf("health %+v", h)
		}

		empty()
		emptied := time.Now()
		load.awaitMore(t, 20)
		t.Logf("round %d: records are taken again %v after there is room", round+1,
			time.Since(emptied).Round(time.Millisecond))

		eventually(t, "logins", func() error {
			if a := n.tryPortalLogin(t); a.status != http.StatusOK {
				return fmt.Errorf("%s", a)
			}
			return nil
		})

		id := fmt.Sprintf("kept-%d", round)
		if a := record(id, sound); a.status != http.StatusCreated {
			t.Errorf("a recording when there is room again: %s", a)
		}

		stored[id] = true
		eventually(t, "the metric",
			func() error { return n.checkMetric(`trunkline_dependency_up{dependency="disk"}`, "1") })
	}

	load.stop()
	live, again := dropRepeats(load.awaitAll(t, stays, ""))
	if again != 0 || stays.endError() != nil {
		t.Errorf("%d events repeated; the socket ended with %v", again, stays.endError())
	}

	text := readFile(t, n.log)
	if n := fullMessage.countMatches(text); n > 6 {
		t.Errorf("the full disk is logged %d times", n)
	}
	if warnings := strings.Count(text, "level=WARN"); warnings > 100 {
		t.Errorf("%d warnings", warnings)
	}

	n.kill(t)
	n.start(t)
	replay := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice")), since: "earliest"})
	if all, again := dropRepeats(load.awaitAll(t, replay, "")); len(all) < len(live) || again != 0 {
		t.Errorf("%d events, %d of them again, after a kill; there were %d", len(all), again, len(live))
	}

	for id := range stored {
		a := n.mustCall(t, http.MethodGet, "/api/v2/recordings/"+id, map[string]string{"X-API-Key": c.key}, "")
		if a.status != http.StatusOK || string(a.body) != sound {
			t.Errorf("%s: %d, %d bytes", id, a.status, len(a.body))
		}
	}

	// The server does not start on a full disk, and starts once there is space.
	n.stop(t)
	empty := fillDisk(t, disk, 0)
	p.mustExit(t, "data_dir: the disk of", n.settings)
	empty()
	empty = fillDisk(t, disk, 1100<<10) // of 64 MiB: under 2 %
	p.mustExit(t, "MiB are free on the disk of", n.settings)
	empty()
	n.start(t)
	load.awaitAll(t, n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice")), since: "earliest"}), "")
}
