package recording

import (
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3KeysLife is how long keys are used before they are read again.
const s3KeysLife = 10 * time.Second

// s3Keys is a credentials.Provider of the keys in the URL of a store. It is safe for concurrent use.
type s3Keys struct {
	cfg S3Config

	mu     sync.Mutex
	readAt time.Time // when the keys were last read; zero: they are to be read again
}

// RetrieveWithCredContext implements credentials.Provider. While the URL cannot be read, as in the
// moment in which its file is replaced, it returns the keys of the start.
func (k *s3Keys) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	k.mu.Lock()
	k.readAt = time.Now()
	k.mu.Unlock()

	current := k.cfg
	if k.cfg.ReadURL != nil {
		text, err := k.cfg.ReadURL()
		if err == nil {
			current, err = ParseS3URL(text)
			if err != nil {
				return credentials.Value{}, err
			}
		}
	}

	return credentials.Value{AccessKeyID: current.AccessKey, SecretAccessKey: current.SecretKey,
		SignerType: credentials.SignatureV4}, nil
}

// Retrieve implements credentials.Provider.
func (k *s3Keys) Retrieve() (credentials.Value, error) { return k.RetrieveWithCredContext(nil) }

// expire makes the next request read the keys again.
func (k *s3Keys) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readAt = time.Time{}
}

// IsExpired implements credentials.Provider.
func (k *s3Keys) IsExpired() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cfg.ReadURL != nil && time.Since(k.readAt) > s3KeysLife
}
