// Command notices writes the licences and notices of all modules that are linked into a
// program, as their licences demand of who distributes it.
//
// usage: notices PROGRAM REPOSITORY >FILE
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"trunkline/sbom/licence"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: notices PROGRAM REPOSITORY >FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func write(program, repository string) error {
	modules, err := licence.Of(program, repository)
	if err != nil {
		return err
	}

	out := bufio.NewWriter(os.Stdout)
	_, _ = fmt.Fprintf(out,
		"Trunkline contains the following software of others. (The certificates of authorities in its\n"+
			"image are Mozilla's, under the MPL-2.0, https://www.mozilla.org/MPL/2.0/.)\n\n") // Flush has the error

	for _, module := range modules {
		_, _ = fmt.Fprintf(out, "%s %s: %s\n", module.Path, module.Version, strings.Join(module.SPDX, " AND "))
	}

	for _, module := range modules {
		for _, text := range module.Texts {
			_, _ = fmt.Fprintf(out, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), module.Path, module.Version,
				text.File, strings.TrimSpace(text.Content))
		}
	}

	pages, err := os.ReadFile(filepath.Join(repository, "web", "THIRD_PARTY_NOTICES"))
	if err != nil {
		return err
	}

	_, _ = fmt.Fprintf(out, "\n%s\n%s\n", strings.Repeat("=", 80), strings.TrimSpace(string(pages)))

	return out.Flush()
}
