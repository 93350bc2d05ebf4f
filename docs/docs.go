// Package docs has the text of the pages in this folder. Package site, below it, makes HTML of them;
// its tests hold that each page can be reached from README.md and that every link leads somewhere.
package docs

import "embed"

// Pages has the pages, with paths from this folder. They show no images; those in images are README's.
//
//go:embed *.md decisions/*.md
var Pages embed.FS
