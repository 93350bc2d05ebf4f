package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/freeport"
	"trunkline/internal/testservice"
)

// TestDocuments executes the examples of the README and of every page of docs, each page in a
// folder with the files of the repository, against its own server with demonstration traffic, as
// started by `make run`. The output shown on a page must appear.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}

	deeper, err := filepath.Glob("../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}

	pages = append(append(pages, deeper...), "../README.md")
	for _, file := range pages {
		page := strings.TrimPrefix(file, "../")
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			blocks, err := parseBlocks(readFile(t, file))
			if err != nil {
				t.Fatalf("%s%v", page, strings.ReplaceAll(err.Error(), "\n:", "\n"+page+":"))
			}

			if len(blocks) > 0 {
				newPageRun(t, page, blocks).runAll(t)
			}
		})
	}
}

// testDatabase is the variable with the URL of an empty database.
const testDatabase = "TEST_DATABASE"

// settingsOf returns the settings of a page's server in addition to the embedded default.
func settingsOf(t *testing.T, page string) map[string]string {
	switch page {
	case "docs/topics.md":
		settings, _ := backendSettings(t)
		delete(settings, "TRUNKLINE_DIRECTORY_FILE")
		delete(settings, "TRUNKLINE_MASTER_KEY")                // the pages rotate the key in the file
		delete(settings, "TRUNKLINE_DATABASE_URL")              // the server creates the demo account in SQLite
		settings["TRUNKLINE_KAFKA_PARTITIONS"] = manyPartitions // shown on the page
		return settings
	case "docs/calls.md": // uses phones
		for _, name := range []string{"baresip", "unshare", "ip"} {
			tool(t, name)
		}
	case "docs/capacity.md": // sets it
		return map[string]string{"TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_USER": "0",
			"TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_ADDRESS": "0", "TRUNKLINE_DEBUG_PPROF": "true"}
	case "docs/backup.md": // starts and stops servers itself
		return map[string]string{testDatabase: testservice.Postgres(t)}
	}

	return nil
}

func newPageRun(t *testing.T, page string, blocks []block) *pageRun {
	for _, name := range []string{"bash", "curl", "node", "npm", "python3", "jq", "sox", "strings", "kcat", "sqlite3",
		"pg_dump"} {
		tool(t, name)
	}

	dir := repository(t)
	ports := freeport.Addresses(t, 3)
	echo, broker, phones := ports[0], ports[1], ports[2]
	settings := withSettings(settingsOf(t, page),
		"TRUNKLINE_DATA_DIR", filepath.Join(dir, "data"), "TRUNKLINE_DEMO_PASSWORD", password,
		"TRUNKLINE_SIP_LISTEN", phones, "TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS", "127.0.0.0/8",
		"TRUNKLINE_ORIGINATION_DRIVER", "auto", "TRUNKLINE_ORIGINATION_INTERNATIONAL", "allow",
		"TRUNKLINE_AUTH_SIP_PORTAL_PASSWORD", "allow", // as deploy/run.sh does
	)
	if brokers := settings["TRUNKLINE_KAFKA_BROKERS"]; brokers != "" {
		broker, _, _ = strings.Cut(brokers, ",")
	} else {
		settings["TRUNKLINE_KAFKA_EMBEDDED_LISTEN"] = broker
	}

	n := newNode(t, page, settings)
	if page != "docs/backup.md" {
		n.start(t)
		startForeign(t, n.settings, program(t), "demo", "--rate", "5")
	}

	_, port, err := net.SplitHostPort(n.address)
	if err != nil {
		t.Fatal(err)
	}

	prefix := settings["TRUNKLINE_KAFKA_TOPIC_PREFIX"]
	here := []string{
		"localhost:9443", "localhost:" + port, "127.0.0.1:9464", strings.TrimPrefix(n.probes, "http://"),
		"127.0.0.1:9092", broker, "-t cc.", "-t " + prefix + "cc.", "-t cdr", "-t " + prefix + "cdr",
		"127.0.0.1:9555", echo, "trunkline ai echo", "trunkline ai echo --listen " + echo,
	}

	if database := settings[testDatabase]; database != "" {
		here = append(here, "postgres://trunkline:secret@postgres/trunkline", database)
	}
	if os.Getuid() != 0 {
		here = append(here, "unshare -n ", "unshare -rn ")
	}

	mine := withSettings(n.settings, "TRUNKLINE_PASSWORD", password, "XDG_CONFIG_HOME", t.TempDir(), "PATH",
		filepath.Join(pythonFolder(t), "bin")+":"+os.Getenv("PATH"))
	delete(mine, "TRUNKLINE_DEMO_PASSWORD")

	return &pageRun{
		page: page, blocks: blocks, dir: dir, shell: newShell(t, dir, mine), programs: map[string]*pageProgram{},
		replaceAddresses: strings.NewReplacer(here...),
	}
}

// repository creates a reader's folder after `make run`: the files of the repository, the
// program, the demo password, and the packages that the clients install.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}

	links := map[string]string{"bin/trunkline": program(t), "bin/trunkline-bench": programNamed(t, "trunkline-bench"),
		"node_modules": filepath.Join(nodeFolder(t), "node_modules")}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		if name := entry.Name(); name != "bin" && name != "data" && name != "node_modules" {
			links[name] = filepath.Join(root, name)
		}
	}

	for _, folder := range []string{"bin", "data"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.WriteFile(filepath.Join(dir, "data", "demo-password"), []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}

	return dir
}
