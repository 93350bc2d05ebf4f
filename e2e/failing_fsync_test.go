package e2e

import (
	"net/http"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// failSyncs makes every fsync and fdatasync of the node fail until the end of the test or of the
// process.
func (n *node) failSyncs(t *testing.T) {
	t.Helper()
	cmd := exec.Command(tool(t, "strace"), "-f", "-q", "-o", "/dev/null", "-p", strconv.Itoa(n.child.process.Pid),
		"-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) // it may have ended already, with the node
		cmd.Wait()
	})
}

// TestAFailingSyncIsNoAcknowledgement runs a server on a disk on which every sync fails.
func TestAFailingSyncIsNoAcknowledgement(t *testing.T) {
	t.Parallel()
	n := newNode(t, "failing disk",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_INGEST_PRODUCE_TIMEOUT": "2s"})
	c := newCluster(t, nil, "", n)
	n.postAccepted(t, c.key, "generic", typeJSON, `{"account_id":"demo","name":"before"}`, 1)
	n.failSyncs(t)

	eventuallyWithin(t, patience, "the broker to notice", func() error {
		n.post(t, c.key, "generic", typeJSON, `{"account_id":"demo","name":"when"}`)
		return n.checkMetric("trunkline_embedded_broker_writable", "0")
	})

	for range 10 {
		if a := n.post(t, c.key, "generic", typeJSON,
			`{"account_id":"demo","name":"after"}`); a.status != http.StatusServiceUnavailable {
			t.Errorf("a record that could not be synced is answered with %d %s", a.status, a.body)
		}
	}

	n.awaitUnready(t, "the embedded broker takes no writes: see the log, check the disk of data_dir, restart")
}
