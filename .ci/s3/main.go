// Command s3 serves a folder as an S3-compatible store, for the tests of recordings. It is
// Versity's S3 gateway, which stores each object as a file in the folder. It is a separate module
// because its dependencies are too large for the product's go.mod.
//
//	S3_ACCESS_KEY=… S3_SECRET_KEY=… s3 127.0.0.1:PORT FOLDER
//
// internal/testservice builds and starts it.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("s3: ")
	if len(os.Args) != 3 {
		log.Fatal("usage: s3 ADDRESS FOLDER")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := serve(ctx, os.Args[1], os.Args[2]); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, address, folder string) error {
	store, err := posix.New(folder, meta.XattrMeta{}, posix.PosixOpts{Concurrency: 100})
	if err != nil {
		return err
	}

	const connections, parts = 1000, 10000
	return embedgw.RunVersityGW(ctx, store, &embedgw.Config{
		RootUserAccess: os.Getenv("S3_ACCESS_KEY"), RootUserSecret: os.Getenv("S3_SECRET_KEY"),
		Region: "eu-1", Ports: []string{address}, KeepAlive: true, Quiet: true,
		MaxConnections: connections, MaxRequests: connections, MultipartMaxParts: parts,
	})
}
