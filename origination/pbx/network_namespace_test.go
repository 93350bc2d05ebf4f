package pbx_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// inNetworkNamespace runs the calling test again in a network namespace of its own,
// where phones from Debian may open what sockets they like, and says whether
// this is that run.
func inNetworkNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	const mark = "TRUNKLINE_TEST_NAMESPACE"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	if testing.Short() {
		t.Skip("real phones are left out in short runs")
	}

	for _, program := range append(programs, "unshare", "ip") {
		if _, err := exec.LookPath(program); err != nil {
			skipOrFail(t, program+" is not installed")
		}
	}

	flags := []string{"-n"}
	if os.Getuid() != 0 {
		flags = []string{"-rn"}
	}
	if output, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		skipOrFail(t, "no network namespace can be made: "+string(output))
	}

	run := append(flags, "sh", "-c", `ip link set lo up && exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$",
		"-test.v", "-test.timeout=20m")
	again := exec.Command("unshare", run...)
	again.Env = append(os.Environ(), mark+"="+t.Name())

	output, err := again.CombinedOutput()
	for _, line := range strings.Split(string(output), "\n") {
		if err != nil || strings.Contains(line, "---") {
			t.Log(line)
		}
	}

	if err != nil {
		t.Errorf("in the namespace: %v", err)
	}

	return false
}

// skipOrFail skips, but not where everything must run.
func skipOrFail(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what)
}
