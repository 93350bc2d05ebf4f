package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// atRest measures one server on the embedded default without connections. build is a key of machine.programs.
func (s *servers) atRest(ctx context.Context, build string) (r report, err error) {
	err = s.makeFolder()
	if err != nil {
		return r, err
	}

	metrics := freePort()
	err = s.spawn([]string{"TRUNKLINE_SIP_LISTEN=off", "TRUNKLINE_DISK_MIN_FREE=0",
		"TRUNKLINE_LISTEN=127.0.0.1:" + freePort(), "TRUNKLINE_METRICS_LISTEN=127.0.0.1:" + metrics,
		"TRUNKLINE_DATA_DIR=" + filepath.Join(s.dir, "server")},
		s.programs[build], "serve")
	if err != nil {
		return r, err
	}

	err = awaitOK(ctx, "http://127.0.0.1:"+metrics+"/readyz")
	if err != nil {
		return r, err
	}

	pid := s.processes[0].Process.Pid
	time.Sleep(restUnmeasured)
	before, err := cpuTicks(pid)
	if err != nil {
		return r, err
	}

	time.Sleep(restMeasured)
	after, err := cpuTicks(pid)
	if err != nil {
		return r, err
	}

	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return r, err
	}

	pages, err := strconv.ParseFloat(strings.Fields(string(statm))[1], 64)
	r.RestCPUPercent = (after - before) / restMeasured.Seconds() // ticks are hundredths of a second
	r.RestMB = pages * float64(os.Getpagesize()) / 1e6
	return r, err
}

// cpuTicks returns user and system time of a process, in hundredths of a second.
func cpuTicks(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, userErr := strconv.ParseFloat(fields[11], 64)
	system, systemErr := strconv.ParseFloat(fields[12], 64)
	return user + system, errors.Join(userErr, systemErr)
}
