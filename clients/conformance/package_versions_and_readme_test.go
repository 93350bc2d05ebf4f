package conformance_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	trunkline "trunkline/clients/go"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestVersionsAreTheServers compares the packages' versions with the server's, which is in the
// chart.
func TestVersionsAreTheServers(t *testing.T) {
	t.Parallel()
	for file, pattern := range map[string]string{
		"../../deploy/helm/trunkline/Chart.yaml": `appVersion: "(.+)"`,
		"../js/package.json":                     `"version": "(.+)"`,
		"../python/pyproject.toml":               `(?m)^version = "(.+)"`,
		"../python/trunkline_client/__init__.py": `__version__ = "(.+)"`,
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if found == nil || found[1] != trunkline.Version {
			t.Errorf("%s has %q, clients/go %s", file, found, trunkline.Version)
		}
	}
}

// TestREADMEHasTheWallboard checks that the README shows the same page as the file, which e2e
// opens in a browser.
func TestREADMEHasTheWallboard(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "../js/README.md"), "```html\n")
	page, _, _ := strings.Cut(rest, "```\n")
	if page == "" || page != read(t, "../js/wallboard.html") {
		t.Error("README.md of clients/js shows another page than wallboard.html")
	}
}
