package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestExampleSettings checks the settings file that make install installs.
func TestExampleSettings(t *testing.T) {
	output := mustRun(t, program(t), "config", "check", "--config", "trunkline.example.yaml")
	if !strings.Contains(output, "data_dir: /var/lib/trunkline") || strings.Contains(output, "warning") {
		t.Errorf("config check prints %s", output)
	}
}

// TestInstall installs into a folder and verifies the unit with systemd.
func TestInstall(t *testing.T) {
	root := t.TempDir()
	mustRun(t, lookTool(t, "make"), "-C", "..", "install", "DESTDIR="+root, "PREFIX=/usr")
	for _, file := range []string{
		"usr/bin/trunkline", "usr/lib/systemd/system/trunkline.service",
		"usr/lib/systemd/system/trunkline-recording-send.service", "etc/trunkline/recording-send.environment",
		"usr/lib/sysusers.d/trunkline.conf",
		"usr/lib/tmpfiles.d/trunkline.conf", "etc/trunkline/trunkline.yaml", "etc/trunkline/environment",
	} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}

	unit := filepath.Join(root, "usr/lib/systemd/system/trunkline.service")
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(string(text), "ExecStart=/usr/bin/trunkline serve") {
		t.Error("the unit starts another binary")
	}

	settings := filepath.Join(root, "etc/trunkline/trunkline.yaml")
	if err := os.WriteFile(settings, []byte("log: {level: debug}\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	mustRun(t, lookTool(t, "make"), "-C", "..", "install", "DESTDIR="+root, "PREFIX=/usr")
	if kept, err := os.ReadFile(settings); err != nil || string(kept) != "log: {level: debug}\n" {
		t.Errorf("installing again writes over the settings: %s %v", kept, err)
	}

	analyze := lookTool(t, "systemd-analyze")
	// systemd looks for the program of ExecStart.
	here := strings.ReplaceAll(string(text), "/usr/bin/trunkline", filepath.Join(root, "usr/bin/trunkline"))
	if err := os.WriteFile(unit, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	if output := mustRun(t, analyze, "verify", "--man=no", unit); strings.Contains(output, unit) {
		t.Errorf("systemd-analyze verify: %s", output)
	}

	output := mustRun(t, analyze, "security", "--offline=true", "--no-pager", unit)
	level := regexp.MustCompile(`exposure level for trunkline.service: ([0-9.]+)`).FindStringSubmatch(output)
	if level == nil {
		t.Fatalf("systemd-analyze security: %s", output)
	}
	if exposure, err := strconv.ParseFloat(level[1], 64); err != nil || exposure > 1.5 {
		t.Errorf("the service's exposure is %s", level[1])
	}

	stop := regexp.MustCompile(`TimeoutStopSec=(\d+)`).FindStringSubmatch(string(text))
	if seconds, err := strconv.Atoi(stop[1]); err != nil || seconds <= 20 {
		t.Errorf("%v is no time to drain in", stop)
	}
}
