// Package docs has the text of the pages in this folder. Package site, below it, makes HTML of them;
// its tests hold that each page can be reached from README.md and that every link leads somewhere.
package docs

import "embed"

// Pages has the pages and their images, with paths from this folder.
//
//go:embed *.md decisions/*.md images/*.png
var Pages embed.FS
