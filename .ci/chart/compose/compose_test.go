package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func load(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../../deploy/compose.yaml"}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}

	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	return project
}

func TestCompose(t *testing.T) {
	project := load(t)
	secrets, roles := makeSecrets(t), map[string]bool{}
	for name, service := range project.Services {
		if service.Image == "" || strings.HasSuffix(service.Image, ":latest") || !strings.Contains(service.Image, ":") {
			t.Errorf("%s: image %q has no version", name, service.Image)
		}

		// Trunkline's own image is built on this machine.
		if !strings.HasPrefix(service.Image, "trunkline:") &&
			!regexp.MustCompile(`:[^@]+@sha256:[0-9a-f]{64}$`).MatchString(service.Image) {
			t.Errorf("%s: image %q has no version and digest", name, service.Image)
		}

		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				if _, err := os.Stat(volume.Source); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			}
		}

		for variable, value := range service.Environment {
			if secret := regexp.MustCompile(`PASSWORD|_URL|KEY`).MatchString(variable); secret && value != nil &&
				!strings.HasPrefix(*value, "/run/secrets/") {
				t.Errorf("%s: %s is written out", name, variable)
			}
		}

		if strings.HasPrefix(service.Image, "trunkline:") {
			for role := range strings.SplitSeq(*service.Environment["TRUNKLINE_ROLES"], ",") {
				roles[role] = true
			}
			checkTrunkline(t, project, service, secrets)
		}
	}

	if len(roles) != 8 {
		t.Errorf("the roles are %v: want all", roles)
	}

	for name, secret := range project.Secrets {
		if !strings.Contains(secret.File, "/compose/secrets/") {
			t.Errorf("secret %s is no file of up.sh's: %s", name, secret.File)
		}
	}
}

// checkTrunkline checks that a node is restricted, has time to drain, and sets only existing
// settings.
func checkTrunkline(t *testing.T, project *types.Project, service types.ServiceConfig, secrets string) {
	t.Helper()
	name := service.Name
	if !service.ReadOnly || len(service.CapDrop) != 1 || service.CapDrop[0] != "ALL" {
		t.Errorf("%s is not restricted", name)
	}
	if service.StopGracePeriod == nil || time.Duration(*service.StopGracePeriod) <= 20*time.Second {
		t.Errorf("%s has no time to drain", name)
	}

	env := []string{}
	for variable, value := range service.Environment {
		text := *value
		if secret, ok := strings.CutPrefix(text, "/run/secrets/"); ok {
			if !mounts(service, secret) {
				t.Errorf("%s: %s names %s, which is not mounted", name, variable, text)
			}
			text = filepath.Join(secrets, filepath.Base(project.Secrets[secret].File))
		}

		env = append(env, variable+"="+text)
	}

	cmd := exec.Command("go", "run", "-buildvcs=false", "./cmd/trunkline", "config", "check")
	cmd.Dir, cmd.Env = "../../..", append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(output), "is no setting") {
		t.Errorf("%s: %v\n%s", name, err, output)
	}
}

func mounts(service types.ServiceConfig, secret string) bool {
	for _, one := range service.Secrets {
		if one.Source == secret {
			return true
		}
	}
	return false
}

// makeSecrets runs up.sh with a docker that does nothing, and returns the folder of the created
// secrets.
func makeSecrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("../../../deploy/compose/up.sh")
	if err != nil {
		t.Fatal(err)
	}

	for name, text := range map[string]string{"up.sh": string(script), "docker": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	var made [2]string
	for i := range made { // the second run keeps the existing secrets
		cmd := exec.Command(filepath.Join(dir, "up.sh"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("up.sh: %v\n%s", err, output)
		}

		url, err := os.ReadFile(filepath.Join(dir, "secrets", "database_url"))
		if err != nil {
			t.Fatal(err)
		}

		made[i] = string(url)
	}

	if made[0] != made[1] {
		t.Error("up.sh makes other secrets the second time")
	}

	return filepath.Join(dir, "secrets")
}
