package load

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestUsageOfProcesses(t *testing.T) {
	own, err := OwnUsage()
	// it works
	for began := time.Now(); err == nil && own.CPU < 40*time.Millisecond && time.Since(began) < time.Minute; {
		own, err = OwnUsage()
	}

	if err != nil || own.CPU < 40*time.Millisecond || own.RSS < 1<<20 {
		t.Errorf("own: %+v, %v", own, err)
	}

	same, err := ProcessUsage(os.Getpid())
	after, _ := OwnUsage()
	const rounding = 100 * time.Millisecond
	if err != nil || same.CPU < own.CPU-rounding || same.CPU > after.CPU+rounding || same.RSS < 1<<20 {
		t.Errorf("by pid: %+v, own %+v to %+v, %v", same, own, after, err)
	}

	if _, err := ProcessUsage(1 << 30); err == nil {
		t.Error("a process that is not there has usage")
	}
}

func TestCPUTicksWithAnyName(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 100 0 0 0 123 45 0 0 20 0 9 0 1 1 1"
	for _, name := range []string{"7 (x)", "7 (a) b (c d)", "7 ()) ( )"} {
		if ticks, err := cpuTicks([]byte(name + rest)); err != nil || ticks != 168 {
			t.Errorf("%s: %d, %v", name, ticks, err)
		}
	}

	for _, text := range []string{"", "7 (x) S 1", "7 (x)" + strings.Replace(rest, "123", "x", 1)} {
		if _, err := cpuTicks([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
