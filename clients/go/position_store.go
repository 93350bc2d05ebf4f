package trunkline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Store keeps the position across restarts of the program.
type Store interface {
	// Load returns the position that was last saved, "" for none. Subscribe calls it once, at its start.
	Load(context.Context) (position string, err error)
	// Save keeps the position for the next Load. An error of either ends the subscription.
	Save(ctx context.Context, position string) error
}

// FileStore keeps the position in a file of this name and replaces it atomically.
type FileStore string

// Load implements Store.
func (f FileStore) Load(context.Context) (string, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the position: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Save implements Store.
func (f FileStore) Save(_ context.Context, position string) error {
	next := string(f) + ".new"
	if err := os.WriteFile(next, []byte(position+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the position: %w", err)
	}
	if err := os.Rename(next, string(f)); err != nil {
		return fmt.Errorf("replacing the position: %w", err)
	}
	return nil
}
