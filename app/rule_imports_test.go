package app_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules hold for code that ships: a test may import what it needs.

const module = "trunkline/"

// steps are our packages, lowest first. An entry is a folder and all below it;
// it imports entries of lower steps only.
var steps = [][]string{
	{"clients", "deploy/balancer", "event"},
	{"internal/fault"},
	{"internal/atomicfile", "internal/freeport", "internal/jsonscan", "internal/keylock", "internal/lag",
		"internal/memorylimit", "internal/metric", "internal/retry", "internal/rounds", "internal/setting",
		"internal/wsframe"},
	{"internal/certificate", "internal/entitytag", "internal/report", "internal/sqldb", "internal/tlsclient"},
	{"internal/aiprotocol", "internal/kafka", "internal/limitprefix", "internal/logthrottle", "internal/masterkey",
		"internal/netguard", "internal/panics", "internal/rawio", "internal/redisclient", "internal/selfcheck",
		"internal/testservice"},
	{"internal/tracing"},
	{"internal/consume", "internal/kafka/kafkatest"},
	{"telephony/eventconn", "telephony/g711", "telephony/srtp"},
	{"telephony/ami", "telephony/audio", "telephony/crossbar", "telephony/esl", "telephony/number", "telephony/rtp",
		"telephony/sip"},
	{"telephony/localcall"},
	{"audit", "cdrindex", "format", "stats"},
	{"identity/oidc"},
	{"identity"},
	{"config", "normalizer"},
	{"aisession", "fanout", "ingest", "origination", "recording", "webhook"},
	{"ingest/feed/kazoo", "origination/pbx"}, // implement ingest/feed's platform and origination's driver
	{"explain", "control"},                   // asks fanout and webhook
	{"api", "web"},
	{"docs"},
	{"settings"}, // composes the settings of the packages below
	{"app"},
	{"cmd/internal"},
	{"cmd/trunkline-bench/load"},
	{"cmd/trunkline", "cmd/trunkline-bench"},
	{"deploy", "e2e"},
}

// owners lists the only importers of a library, or of a path below it: folders,
// or files of a folder ("*": of any).
var owners = map[string][]string{
	"github.com/segmentio/kafka-go":       {"internal/kafka", "internal/testservice"},
	"github.com/twmb/franz-go":            {"internal/kafka"},
	"github.com/labstack/echo/v4":         {"api"},
	"github.com/rabbitmq/amqp091-go":      {"ingest/feed/kazoo"},
	"github.com/gorilla/websocket":        {"fanout", "aisession", "cmd/trunkline"},
	"github.com/pion/srtp":                {"telephony/srtp"},
	"github.com/thesyncim/gopus":          {"telephony/audio"},
	"github.com/nyaruka/phonenumbers":     {"telephony/number"},
	"github.com/redis/go-redis/v9":        {"*/*_redis.go", "app", "internal/redisclient", "internal/testservice"},
	"github.com/alicebob/miniredis/v2":    {"app"},
	"github.com/jackc/pgx/v5":             {"internal/sqldb", "internal/testservice"},
	"modernc.org/sqlite":                  {"internal/sqldb"},
	"github.com/testcontainers":           {"internal/testservice"},
	"github.com/golang-jwt/jwt/v5":        {"identity", "internal/testservice", "cmd/trunkline-bench"},
	"github.com/coreos/go-oidc/v3":        {"identity/oidc", "internal/testservice"},
	"golang.org/x/oauth2":                 {"identity/oidc", "internal/kafka"},
	"github.com/aws":                      {"internal/kafka"},
	"github.com/yuin/goldmark":            {"docs"},
	"github.com/spf13/cobra":              {"cmd/internal", "cmd/trunkline", "cmd/trunkline-bench"},
	"github.com/minio/minio-go/v7":        {"recording"},
	"go.opentelemetry.io":                 {"internal/tracing", "app"},
	"go.opentelemetry.io/otel/sdk":        {"app/tracing.go"}, // others only have a tracer
	"go.opentelemetry.io/otel/exporters":  {"app/tracing.go", "internal/tracing"},
	module + "internal/metric":            {"*/metrics.go"},
	module + "internal/testservice":       {"internal/testservice"}, // nothing that ships imports it
	"github.com/prometheus/client_golang": {"*/*.go"},               // but see metricMakers
}

// metricMakers begin the names of the functions that make a metric: they are
// called in files named metrics.go.
var metricMakers = []string{
	"NewCounter", "NewGauge", "NewHistogram", "NewSummary", "NewUntyped", "NewDesc", "NewConst", "MustNewConst",
}

func TestImportRules(t *testing.T) {
	packages := listPackages(t)
	t.Run("every package has a step and every name in the rules exists", func(t *testing.T) {
		checkNames(t, packages)
	})

	t.Run("a package imports lower steps only", func(t *testing.T) {
		for _, p := range packages {
			for _, imported := range p.Imports {
				if from, to := p.folder(), folderOf(imported); to != "" && from != to && stepOf(to) >= stepOf(from) {
					t.Errorf("%s (step %d) imports %s (step %d)", p.ImportPath, stepOf(from), imported, stepOf(to))
				}
			}
		}
	})

	t.Run("libraries stay with their owners, and every permission is used", func(t *testing.T) {
		used := map[[2]string]bool{} // library and owner
		eachFile(t, packages, func(p listed, file string, syntax *ast.File) {
			for _, imported := range importsOf(t, syntax) {
				for library, allowed := range owners {
					if !within(imported, library) {
						continue
					}

					owned := false
					for _, owner := range allowed {
						if p.owns(file)(owner) {
							owned, used[[2]string{library, owner}] = true, true
						}
					}

					if !owned {
						t.Errorf("%s/%s imports %s, which belongs to %v", p.ImportPath, file, imported, allowed)
					}
				}
			}
		})

		for library, allowed := range owners {
			for _, owner := range allowed {
				if !used[[2]string{library, owner}] && library != module+"internal/testservice" {
					t.Errorf("%s may import %s and does not: remove the permission", owner, library)
				}
			}
		}
	})

	t.Run("metrics are made in metrics.go", func(t *testing.T) {
		eachFile(t, packages, func(p listed, file string, syntax *ast.File) {
			if file == "metrics.go" || !slices.ContainsFunc(importsOf(t, syntax), isPrometheus) {
				return
			}

			ast.Inspect(syntax, func(node ast.Node) bool {
				call, ok := node.(*ast.SelectorExpr)
				if ok && slices.ContainsFunc(metricMakers,
					func(maker string) bool { return strings.HasPrefix(call.Sel.Name, maker) }) {
					t.Errorf("%s/%s calls %s", p.ImportPath, file, call.Sel.Name)
				}
				return true
			})
		})
	})
}

// checkNames refuses rules about folders and libraries that do not exist.
func checkNames(t *testing.T, packages []listed) {
	built := map[string]bool{}
	imported := map[string]bool{}
	for _, p := range packages {
		if p.folder() == "" {
			t.Errorf("%s has no step: add its folder to one", p.ImportPath)
		}

		built[p.folder()] = true
		for _, one := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			imported[one] = true
		}
	}

	folders := slices.Concat(steps...)
	for _, folder := range folders {
		if !built[folder] {
			t.Errorf("the rules name %s, which does not exist", folder)
		}
	}

	for library, allowed := range owners {
		found := false
		for one := range imported {
			found = found || within(one, library)
		}

		if !found {
			t.Errorf("the rules name %s, which nothing imports", library)
		}

		for _, owner := range allowed {
			if folder, _ := splitOwner(owner); folder != "*" && !slices.Contains(folders, folder) {
				t.Errorf("%s belongs to %s, which has no step", library, owner)
			}
		}
	}
}

// listed is one package as go list prints it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	list := exec.Command("go", "list", "-e",
		"-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	list.Dir = ".."
	output, err := list.Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}

	var packages []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading the list: %v", err)
		}

		packages = append(packages, p)
	}
}

func (p listed) folder() string { return folderOf(p.ImportPath) }

// owns returns whether an owner is this file of the package.
func (p listed) owns(file string) func(owner string) bool {
	return func(owner string) bool {
		folder, pattern := splitOwner(owner)
		matches, err := path.Match(pattern, file)
		return err == nil && matches && (folder == "*" || folder == p.folder())
	}
}

// splitOwner splits "folder/pattern.go"; a folder alone means all its files.
func splitOwner(owner string) (folder, pattern string) {
	if strings.HasSuffix(owner, ".go") {
		return path.Dir(owner), path.Base(owner)
	}
	return owner, "*"
}

// folderOf returns the entry of steps that the package belongs to, the innermost of
// several, "" for none.
func folderOf(importPath string) (innermost string) {
	path, ours := strings.CutPrefix(importPath, module)
	for _, folder := range slices.Concat(steps...) {
		if ours && within(path, folder) && len(folder) > len(innermost) {
			innermost = folder
		}
	}
	return innermost
}

func stepOf(folder string) int {
	return slices.IndexFunc(steps, func(step []string) bool { return slices.Contains(step, folder) })
}

func within(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}

func isPrometheus(imported string) bool {
	return within(imported, "github.com/prometheus/client_golang")
}

// listWithTests is listPackages whose GoFiles have the files of tests, too.
func listWithTests(t *testing.T) []listed {
	t.Helper()
	packages := listPackages(t)
	for i := range packages {
		p := &packages[i]
		p.GoFiles = slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles)
	}
	return packages
}

func eachFile(t *testing.T, packages []listed, check func(p listed, file string, syntax *ast.File)) {
	t.Helper()
	for _, p := range packages {
		for _, file := range p.GoFiles {
			syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil,
				parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Errorf("reading %s: %v", file, err)
				continue
			}

			check(p, file, syntax)
		}
	}
}

func importsOf(t *testing.T, syntax *ast.File) []string {
	t.Helper()
	var paths []string
	for _, one := range syntax.Imports {
		imported, err := strconv.Unquote(one.Path.Value)
		if err != nil {
			t.Fatalf("reading an import: %v", err)
		}
		paths = append(paths, imported)
	}

	return paths
}
