// Command export writes the pages of docs as files into a folder: make site.
package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"trunkline/docs"
	"trunkline/docs/site"
	"trunkline/web"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "export: needs the repository's folder and the one to write to")
		os.Exit(2)
	}
	if err := export(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "export: %v\n", err)
		os.Exit(1)
	}
}

// export writes the site. What the frame shares with the board is taken from it.
func export(repository, dir string) error {
	s, err := site.New(docs.Pages, site.Files())
	if err != nil {
		return err
	}

	var failed error
	keep := func(at string, content []byte, err error) {
		if err == nil {
			err = write(filepath.Join(dir, filepath.FromSlash(at)), content)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("writing %s: %w", at, err)
		}
	}

	s.Each(func(at string, content func() ([]byte, error)) {
		body, err := content()
		keep(at, body, err)
	})

	board, err := web.New()
	if err != nil {
		return err
	}

	for _, name := range site.BoardAssets() {
		answer := httptest.NewRecorder()
		board.ServeHTTP(answer, httptest.NewRequest("GET", web.PathAssets+name, nil))
		keep(name, answer.Body.Bytes(), nil)
	}

	for _, name := range []string{"openapi.yaml", "asyncapi.yaml"} {
		body, err := os.ReadFile(filepath.Join(repository, "api", name))
		keep(name, body, err)
	}

	return failed
}

func write(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}
