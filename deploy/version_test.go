package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOneVersion checks that all that is released together has the version of the file VERSION.
func TestOneVersion(t *testing.T) {
	version := strings.TrimSpace(string(readFile(t, "../VERSION")))
	for file, pattern := range map[string]string{
		"helm/trunkline/Chart.yaml":        `(?m)^version: (\S+)$`,
		"../clients/js/package.json":       `"version": "([^"]+)"`,
		"../clients/python/pyproject.toml": `(?m)^version = "([^"]+)"$`,
		"../CHANGELOG.md":                  `(?m)^## (\S+)$`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(readFile(t, file)))
		if found == nil || found[1] != version {
			t.Errorf("%s has the version %q, VERSION %q", file, found, version)
		}
	}

	if chart := string(readFile(t, "helm/trunkline/Chart.yaml")); !strings.Contains(chart,
		`appVersion: "`+version+`"`) {
		t.Errorf("the chart's default image is not trunkline:%s", version)
	}
}

// TestVersionOfACheckout checks that only an unchanged commit with its tag is a release.
func TestVersionOfACheckout(t *testing.T) {
	dir := t.TempDir()
	runInCheckout := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
		}

		return strings.TrimSpace(string(output))
	}

	write := func(name string, content []byte, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}

	write("VERSION", []byte("1.2.3\n"), 0o644)
	write("deploy/version.sh", readFile(t, "version.sh"), 0o755)
	runInCheckout("git", "init", "-q")
	runInCheckout("git", "add", ".")
	t.Setenv("GIT_COMMITTER_DATE", "2026-11-27T01:02:03+0100")
	runInCheckout("git", "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "one")

	if got := runInCheckout("deploy/version.sh", "date"); got != "2026-11-27T00:02:03Z" {
		t.Errorf("the commit's date: %s", got)
	}

	if got := runInCheckout("deploy/version.sh"); !regexp.MustCompile(`^1\.2\.3-dev\.[0-9a-f]{8}$`).MatchString(got) {
		t.Errorf("without a tag: %s", got)
	}

	runInCheckout("git", "tag", "v1.2.3")
	if got := runInCheckout("deploy/version.sh"); got != "1.2.3" {
		t.Errorf("with its tag: %s", got)
	}

	write("VERSION", []byte("1.2.4\n"), 0o644)
	got := runInCheckout("deploy/version.sh")
	if !strings.HasPrefix(got, "1.2.4-dev.") || !strings.HasSuffix(got, ".changed") {
		t.Errorf("changed: %s", got)
	}
}

// TestEveryBuildTellsItsDate checks that where a program gets its version, it gets the commit and its date, too.
func TestEveryBuildTellsItsDate(t *testing.T) {
	builds := 0
	for _, pattern := range []string{"../Makefile", "*.sh", "../.ci/*", "../.ci/*/*.sh"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}

		for _, file := range files {
			content, _ := os.ReadFile(file) // a folder has none
			for line := range strings.Lines(string(content)) {
				if !strings.Contains(line, "-X main.version=") {
					continue
				}

				builds++
				if !strings.Contains(line, "-X main.commit=") || !strings.Contains(line, "-X main.date=") {
					t.Errorf("%s builds without commit or date: %s", file, line)
				}
			}
		}
	}

	if builds < 4 {
		t.Errorf("%d builds are found", builds)
	}
}
