package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
)

// recordingUser does with curl what a user of the account demo does with recordings.
type recordingUser struct {
	*node
	curlPath string
	key      string // API key, which stores and plays recordings
	token    string // administrator's, which configures
}

func newRecordingUser(t *testing.T, n *node) *recordingUser {
	t.Helper()
	r := &recordingUser{node: n, curlPath: tool(t, "curl"),
		key: n.cli(t, "apikey", "create", "--account", "demo", "--scope", "ingest,read,recordings,calls")}
	r.login(t)
	return r
}

// login obtains the administrator's token, also with curl.
func (r *recordingUser) login(t *testing.T) {
	t.Helper()
	var session portalSession
	r.decode(t, r.curl(t, "-H", "Content-Type: application/json",
		"-d", fmt.Sprintf(`{"username":"admin","password":%q,"domain":"demo.local"}`, password), r.url+"/ucp/v2/login"),
		&session)
	r.token = session.AccessToken
}

// curl sends a request, which must succeed.
func (r *recordingUser) curl(t *testing.T, args ...string) []byte {
	t.Helper()
	return outputOf(t, r.curlPath,
		append([]string{"-sS", "--fail-with-body", "--cacert", filepath.Join(r.dir, "tls", "cert.pem")}, args...)...)
}

func (r *recordingUser) decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// encryptionConfig is a response of the configuration endpoint.
type encryptionConfig struct {
	Config struct {
		Key        string            `json:"key"`
		Salt       string            `json:"salt"`
		KeyVersion int64             `json:"key_version"`
		OldKeys    map[string]string `json:"historical_keys"`
		OldSalts   map[string]string `json:"historical_salts"`
	} `json:"config"`
}

func (r *recordingUser) configure(t *testing.T, body string) (c encryptionConfig) {
	t.Helper()
	args := []string{"-H", "Authorization: Bearer " + r.token, "-H", "X-Account-ID: demo"}
	if body != "" {
		args = append(args, "-X", "PUT", "-H", "Content-Type: application/json", "-d", body)
	}
	r.decode(t, r.curl(t, append(args, r.url+"/api/v2/config/call_recording_encryption")...), &c)
	return c
}

func (r *recordingUser) recordingURL(id string) string { return r.url + "/api/v2/recordings/" + id }

// play downloads a recording, or a part of it.
func (r *recordingUser) play(t *testing.T, id string, args ...string) []byte {
	t.Helper()
	return r.curl(t, append(args, "-H", "X-API-Key: "+r.key, r.recordingURL(id))...)
}

type recordingMetadata struct {
	Encrypted  bool   `json:"encrypted"`
	KeyVersion int64  `json:"key_version"`
	Size       int64  `json:"size"`
	StoredSize int64  `json:"stored_size"`
	Type       string `json:"content_type"`
}

func (r *recordingUser) metadata(t *testing.T, id string) (m recordingMetadata) {
	t.Helper()
	r.decode(t, r.play(t, id+"/metadata"), &m)
	return m
}
