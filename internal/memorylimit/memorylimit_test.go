package memorylimit

import (
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func filesOf(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

func TestContainerReadsTheLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2, own namespace": {map[string]string{"proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"version 2, the host's namespace": {map[string]string{
			"proc/self/cgroup":                                        "0::/system.slice/trunkline.service\n",
			"sys/fs/cgroup/system.slice/memory.max":                   "536870912\n",
			"sys/fs/cgroup/system.slice/trunkline.service/memory.max": "max\n",
		}, 512 << 20},
		"version 2, a lower limit above": {map[string]string{
			"proc/self/cgroup": "0::/pod/container\n", "sys/fs/cgroup/pod/memory.max": "100",
			"sys/fs/cgroup/pod/container/memory.max": "200",
		}, 100},
		"version 1": {map[string]string{
			"proc/self/cgroup":                           "12:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 256 << 20},
		"version 1 without a limit": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0},
		"version 2 without a limit": {map[string]string{"proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n"}, 0},
		"no cgroups": {nil, 0},
		"damaged": {map[string]string{"proc/self/cgroup": "::\nx\n0::../..\n0::/\n",
			"sys/fs/cgroup/memory.max": "-1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ContainerLimit(filesOf(tc.files)); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestFollowSetsTheRuntimesLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)

	container := filesOf(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000000000\n"})

	if got := Follow(container, func(string) string { return "1GiB" }); got != 0 || debug.SetMemoryLimit(-1) != before {
		t.Errorf("with %s set: %d", Variable, got)
	}
	if got := Follow(filesOf(nil), func(string) string { return "" }); got != 0 || debug.SetMemoryLimit(-1) != before {
		t.Errorf("without a container: %d", got)
	}
	if got := Follow(container, func(string) string { return "" }); got != 900_000_000_000 ||
		debug.SetMemoryLimit(-1) != got {
		t.Errorf("%d set", debug.SetMemoryLimit(-1))
	}
}
