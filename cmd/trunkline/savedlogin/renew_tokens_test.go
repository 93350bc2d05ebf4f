package savedlogin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"trunkline/cmd/internal/cli"
)

// TestAnInterruptDoesNotLoseARenewal interrupts a command after the server has used up the
// refresh token: the new tokens must be in the file.
func TestAnInterruptDoesNotLoseARenewal(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		interrupt()
		_ = json.NewEncoder(w).Encode(tokens{AccessToken: "access-2", RefreshToken: "refresh-2", ExpiresIn: 3600})
	}))
	defer server.Close()

	home := t.TempDir()
	saved := loginFile{filepath.Join(home, "trunkline", "login.json")}
	if err := os.MkdirAll(filepath.Dir(saved.path), 0o700); err != nil {
		t.Fatal(err)
	}

	expired := login{URL: server.URL, AccessToken: "access-1", RefreshToken: "refresh-1",
		ExpiresAt: time.Now().Unix() - 1}
	if err := saved.write(expired); err != nil {
		t.Fatal(err)
	}

	session, err := Open(&cli.Program{Env: []string{"XDG_CONFIG_HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()

	token, err := session.AccessToken(ctx)
	if err != nil || token != "access-2" {
		t.Errorf("token %q, %v", token, err)
	}

	if l, err := saved.read(); err != nil || l.RefreshToken != "refresh-2" {
		t.Errorf("saved refresh token %q, %v", l.RefreshToken, err)
	}
}
