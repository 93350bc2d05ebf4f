package chart

import (
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	apps "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

var scratch string // folder of the built program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "trunkline-chart-")
	if err != nil {
		panic(err)
	}
	scratch = dir
	log.SetOutput(io.Discard) // Helm logs each symbolic link that it follows
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "trunkline")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/trunkline")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// checkSettings checks each component's settings with the program, with a file for every secret.
func checkSettings(t *testing.T, r rendered) {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}

	example := map[string]string{
		"database.url": "postgres://u:p@db/trunkline", "recordings.url": "s3://KEY:SECRET@s3:9000/bucket",
		"master_key": strings.Repeat("00", 32), "tracing.headers": "Authorization=Bearer%20key",
	}

	for _, d := range objectsOf[*apps.Deployment](r.objects) {
		dir := t.TempDir()
		settings := settingsOf(t, d, r)
		for key, value := range settings["tls"].(map[string]any) { // files mounted in the pod
			if name, ok := strings.CutSuffix(key, "_file"); ok {
				settings["tls"].(map[string]any)[key] = write(t, dir, name, value.(string))
			}
		}

		if kafka, ok := settings["kafka"].(map[string]any); ok && kafka["tls"] != nil {
			kafka["tls"].(map[string]any)["ca_file"] = write(t, dir, "ca", "")
		}

		text, err := yaml.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}

		cmd := exec.Command(program, "config", "check", "--config", write(t, dir, "trunkline.yaml", string(text)))
		cmd.Env = []string{"HOME=" + dir}
		for _, variable := range d.Spec.Template.Spec.Containers[0].Env {
			value := variable.Value
			if setting := filepath.Base(value); strings.HasSuffix(variable.Name, "_FILE") {
				secret := example[setting]
				if secret == "" {
					secret = "a secret"
				}
				value = write(t, dir, setting, secret)
			}

			cmd.Env = append(cmd.Env, variable.Name+"="+value)
		}

		if output, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(output), "is no setting") {
			t.Errorf("%s: %v\n%s", d.Name, err, output)
		}
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parseSeconds(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
