package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// inNetworkNamespace runs the calling test again in a new network namespace and reports whether this is
// that run: phones from Debian open sockets on every address. That run has further variables NAME=value.
func inNetworkNamespace(t *testing.T, variables ...string) bool {
	t.Helper()
	const mark = "TEST_NAMESPACE"
	if os.Getenv(mark) == t.Name() {
		return true
	}

	for _, name := range []string{"baresip", "sox", "unshare", "ip"} {
		tool(t, name)
	}

	flags := []string{"-n"}
	if os.Getuid() != 0 {
		flags = []string{"-rn"}
	}
	if out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		skipMissingTool(t, "no network namespace can be made: "+string(out))
	}

	again := exec.Command("unshare", append(flags, "sh", "-c", `ip link set lo up && exec "$0" "$@"`,
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=20m")...)
	again.Env = append(os.Environ(), mark+"="+t.Name(), programFolder+"="+filepath.Dir(program(t)))
	again.Env = append(again.Env, variables...)
	out, err := again.CombinedOutput()
	if err != nil {
		t.Errorf("in the namespace: %v\n%s", err, out)
	} else if !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("it did not run in the namespace:\n%s", out)
	}

	return false
}
