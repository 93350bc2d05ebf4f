package certificate

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Pair is a certificate and its key, in two files.
type Pair struct {
	CertSetting       string // name of the setting that has CertFile, such as tls.cert_file; for messages
	CertFile, KeyFile string
}

// Load reads the files.
func (p Pair) Load() (*tls.Certificate, error) {
	loaded, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		return nil, err
	}
	return &loaded, nil
}

// Reloader holds the certificate of a Pair for the TLS handshakes of a listener, and reads it again after a change of
// its files.
type Reloader struct {
	Pair
	log    *slog.Logger
	loaded atomic.Pointer[tls.Certificate] // that Get returns
	readAt [2]time.Time                    // modification times of the files at the last read
}

// Open reads the files of p. Its error is that of Pair.Load.
func Open(p Pair, log *slog.Logger) (*Reloader, error) {
	s := &Reloader{Pair: p, log: log}
	// Before the files are read: a change during the reading is seen at the next Reload.
	s.readAt = s.modTimes()
	loaded, err := s.Load()
	s.loaded.Store(loaded)
	return s, err
}

// Get is tls.Config.GetCertificate.
func (s *Reloader) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.loaded.Load(), nil }

// Reload reads the files again if they have changed, and returns the certificate that is served. If the
// new one cannot be used, it keeps the old one and logs that. The error is always nil: selfcheck takes a function
// that may have one. It is not safe for concurrent use, except with Get.
func (s *Reloader) Reload() (*tls.Certificate, error) {
	times := s.modTimes()
	if times != s.readAt {
		// Before Load, and also if it fails: a file that cannot be used is reported once.
		s.readAt = times
		loaded, err := s.Load()
		if err != nil {
			s.log.Error("the changed certificate cannot be used, keeping the old one", "file", s.CertFile, "error", err)
		} else {
			s.loaded.Store(loaded)
			s.log.Info("certificate reloaded", "file", s.CertFile, "expires", loaded.Leaf.NotAfter)
		}
	}

	return s.loaded.Load(), nil
}

// modTimes returns the modification times of the files, zero for a missing file.
func (s *Reloader) modTimes() (times [2]time.Time) {
	for i, file := range []string{s.CertFile, s.KeyFile} {
		info, err := os.Stat(file)
		if err == nil {
			times[i] = info.ModTime()
		}
	}
	return times
}
