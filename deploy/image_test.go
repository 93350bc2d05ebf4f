package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImage builds the image as make image does and runs it as in production: as an unprivileged
// user, with a volume as its only writable folder, without capabilities and shell.
func TestImage(t *testing.T) {
	docker := dockerEngine(t)
	program(t)

	// -o: the artifacts exist already
	mustRun(t, "make", "-C", "..", "-o", "artifacts", "image", "VERSION="+testVersion)
	if output := docker(t, "run", "--rm", "--network", "none", "trunkline:"+testVersion,
		"version"); !strings.HasPrefix(output, "trunkline "+testVersion+"\ncommit ") {
		t.Errorf("the image's version is %q", output)
	}

	id := strings.TrimSpace(docker(t, "run", "--detach", "--network", "none", "--read-only", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--health-interval", "1s", "--env", "TRUNKLINE_DEMO_PASSWORD="+password,
		"trunkline:"+testVersion))
	t.Cleanup(func() { docker(t, "rm", "--force", "--volumes", id) })

	inspect := func(field string) string { return strings.TrimSpace(docker(t, "inspect", "--format", field, id)) }
	eventually(t, "the container to be healthy", func() error {
		if state := inspect("{{.State.Status}} {{.State.Health.Status}}"); state != "running healthy" {
			return errors.New(state + docker(t, "logs", "--tail", "3", id))
		}
		return nil
	})

	if user := inspect("{{.Config.User}}"); user != "65532:65532" {
		t.Errorf("it runs as %s", user)
	}
	if output := docker(t, "exec", id, "/trunkline", "account", "list"); !strings.Contains(output, "demo.local") {
		t.Errorf("account list beside the server prints %s", output)
	}

	docker(t, "stop", "--time", "30", id)
	if code := inspect("{{.State.ExitCode}}"); code != "0" {
		t.Errorf("after SIGTERM, exit code %s", code)
	}
}

// dockerEngine returns a running Docker engine, or starts one; docker runs its client. Not every
// machine permits that.
func dockerEngine(t *testing.T) (docker func(t *testing.T, args ...string) string) {
	t.Helper()
	client, err := exec.LookPath("docker")
	if err != nil {
		t.Skip("NOT TESTED: docker is not here")
	}

	docker = func(t *testing.T, args ...string) string {
		t.Helper()
		output, err := exec.Command(client, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return string(output)
	}

	if exec.Command(client, "info").Run() == nil {
		return docker
	}

	daemon, err := exec.LookPath("dockerd")
	if err != nil || os.Getuid() != 0 {
		t.Skip("NOT TESTED: no Docker engine runs here, and none can be started")
	}

	dir, err := os.MkdirTemp("", "tl-docker-") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := "unix://" + filepath.Join(dir, "sock")
	t.Setenv("DOCKER_HOST", socket)

	daemonRuns := startChild(t, os.Environ(), daemon, "--host", socket, "--data-root", filepath.Join(dir, "data"),
		"--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "pid"), "--storage-driver", "vfs", "--bridge", "none", "--iptables=false")
	eventually(t, "the Docker engine", func() error {
		select {
		case <-daemonRuns.ended:
			t.Skip("NOT TESTED: a Docker engine does not run on this machine")
		default:
		}
		return exec.Command(client, "info").Run()
	})

	return docker
}

// TestForeignImagesHaveDigests covers all images except compose's, which are covered in
// .ci/chart/compose.
func TestForeignImagesHaveDigests(t *testing.T) {
	text := string(readFile(t, "Dockerfile"))
	stages := map[string]bool{"scratch": true}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?$`).FindAllStringSubmatch(text, -1) {
		if !stages[m[1]] && m[1] != "${GO_IMAGE}" {
			t.Errorf("FROM %s: neither a stage nor an image with a digest", m[1])
		}
		stages[m[2]] = true
	}

	if !regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:[0-9.]+@sha256:[0-9a-f]{64}$`).MatchString(text) {
		t.Error("GO_IMAGE has no version and digest")
	}
}
