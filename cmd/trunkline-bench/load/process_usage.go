package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the CPU and memory of processes.
type Usage struct {
	CPU  time.Duration // user and system, since process start
	RSS  int64         // resident memory, bytes
	Heap int64         // Go heap and stacks in use, bytes; 0: unknown
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage { return Usage{u.CPU + o.CPU, u.RSS + o.RSS, u.Heap + o.Heap} }

// OwnUsage returns the usage of this process.
func OwnUsage() (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("reading our own usage: %w", err)
	}
	rss, err := residentBytes("self")
	return Usage{CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()), RSS: rss}, err
}

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 on all current Linux platforms.
const clockTick = time.Second / 100

// ProcessUsage returns the usage of a process of this machine.
func ProcessUsage(pid int) (Usage, error) {
	process := strconv.Itoa(pid)
	stat, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}

	ticks, err := cpuTicks(stat)
	if err != nil {
		return Usage{}, fmt.Errorf("reading the usage of process %d: %w", pid, err)
	}

	rss, err := residentBytes(process)
	return Usage{CPU: time.Duration(ticks) * clockTick, RSS: rss}, err
}

// cpuTicks returns utime and stime of /proc/PID/stat, proc(5). The preceding process name may
// contain any characters; it ends at the last parenthesis.
func cpuTicks(stat []byte) (ticks uint64, err error) {
	const utime, stime = 11, 12 // counted from the field after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= stime {
		return 0, fmt.Errorf("a stat of %d fields", len(fields))
	}

	for _, field := range fields[utime : stime+1] {
		n, err := strconv.ParseUint(string(field), 10, 63)
		if err != nil {
			return 0, err
		}
		ticks += n
	}

	return ticks, nil
}

func residentBytes(process string) (int64, error) {
	statm, err := os.ReadFile("/proc/" + process + "/statm")
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %s: %w", process, err)
	}

	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the memory of process %s: %d fields", process, len(fields))
	}

	pages, err := strconv.ParseInt(string(fields[1]), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %s: %w", process, err)
	}

	return pages * int64(os.Getpagesize()), nil
}
