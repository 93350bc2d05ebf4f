package app

import (
	"trunkline/docs"
	"trunkline/docs/site"
	"trunkline/web"
)

// buildBoard builds the live board and the pages under /docs.
func buildBoard() (*web.Handler, error) {
	board, err := web.New()
	if err != nil {
		return nil, err
	}

	pages, err := site.New(docs.Pages, site.Served())
	if err != nil {
		return nil, err
	}

	pages.Each(board.Add)
	return board, nil
}
