package savedlogin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/atomicfile"
)

// loginFile is the file of the saved login.
type loginFile struct{ path string }

// findLoginFile returns the login file of the user that runs the command.
func findLoginFile(p *cli.Program) (loginFile, error) {
	dir := p.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := p.Getenv("HOME")
		if home == "" {
			return loginFile{}, cli.Usagef("neither XDG_CONFIG_HOME nor HOME is set: the login cannot be saved")
		}
		dir = filepath.Join(home, ".config")
	}
	return loginFile{filepath.Join(dir, "trunkline", "login.json")}, nil
}

func (f loginFile) read() (l login, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, errNoLogin
	}
	if err != nil {
		return l, fmt.Errorf("reading the login: %w", err)
	}

	err = json.Unmarshal(text, &l)
	if err != nil || l.URL == "" {
		return l, cli.Usagef("%s is damaged: run trunkline login again", f.path)
	}

	return l, nil
}

func (f loginFile) write(l login) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = atomicfile.WriteBytes(f.path, 0o600, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("saving the login: %w", err)
	}
	return nil
}

// update changes the saved login under a lock against other commands. If change returns an error,
// the login stays unchanged.
func (f loginFile) update(change func(*login) error) error {
	return f.withLock(func() error {
		l, err := f.read()
		if err != nil {
			return err
		}

		if err := change(&l); err != nil {
			return err
		}

		return f.write(l)
	})
}

// withLock runs work while it holds the lock file next to the login file.
func (f loginFile) withLock(work func() error) (err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("creating the directory of the login: %w", err)
	}

	lock, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the login: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // unlocks

	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking the login: %w", err)
	}

	return work()
}

func (f loginFile) remove() error {
	err := os.Remove(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the login: %w", err)
	}
	return nil
}

// login is the content of the file.
type login struct {
	URL          string   `json:"url"`
	CAFiles      []string `json:"ca_files,omitempty"` // trusted in addition to the system's, absolute paths
	Insecure     bool     `json:"insecure,omitempty"`
	Username     string   `json:"username"`
	Domain       string   `json:"domain"`
	AccountID    string   `json:"account_id"`
	AccessToken  string   `json:"access_token"`
	RefreshToken string   `json:"refresh_token"`
	ExpiresAt    int64    `json:"expires_at"` // of the access token, Unix seconds
}

func (l *login) setTokens(t tokens, now time.Time) {
	l.AccountID, l.AccessToken, l.RefreshToken = t.User.AccountID, t.AccessToken, t.RefreshToken
	l.ExpiresAt = now.Unix() + t.ExpiresIn
}

var errNoLogin = cli.Usagef("there is no login: run trunkline login --username U --domain D first")
