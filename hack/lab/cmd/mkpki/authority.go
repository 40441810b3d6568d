package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificate names a key pair: a client's, and a server's too when it has IPs.
type certificate struct {
	file  string // without .crt and .key
	name  string
	group string
	dns   []string
	ips   []net.IP
}

// pair is a certificate and its key, PEM-encoded.
type pair struct{ cert, key []byte }

// authority is the CA, and the directory that it issues into.
type authority struct {
	dir      string
	cert     *x509.Certificate
	pem      []byte
	key      *ecdsa.PrivateKey
	serial   int64
	from, to time.Time
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir, serial: 1, from: time.Now().Add(-time.Hour), to: time.Now().AddDate(10, 0, 0)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "lab-ca"}, NotBefore: a.from, NotAfter: a.to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment}
	der, err := x509.CreateCertificate(rand.Reader, t, t, a.key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, err
	}
	return a, a.write("ca", pair{a.pem, key})
}

// issue signs c, writes both of its files and returns them.
func (a *authority) issue(c certificate) (pair, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	a.serial++
	t := &x509.Certificate{SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: c.name}, NotBefore: a.from, NotAfter: a.to,
		DNSNames: c.dns, IPAddresses: c.ips,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if c.group != "" {
		t.Subject.Organization = []string{c.group}
	}
	if len(c.ips) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, k.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	key, err := keyPEM(k)
	if err != nil {
		return pair{}, err
	}
	p := pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key}
	return p, a.write(c.file, p)
}

// kubeconfig issues u and writes a kubeconfig that logs in as it.
func (a *authority) kubeconfig(u certificate, server string) error {
	p, err := a.issue(u)
	if err != nil {
		return err
	}
	b64 := base64.StdEncoding.EncodeToString
	return os.WriteFile(filepath.Join(a.dir, u.file+".kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: u
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: lab
  context: {cluster: lab, user: u}
current-context: lab
`, server, b64(a.pem), b64(p.cert), b64(p.key)), 0o600)
}

// serviceAccountKey writes the pair that signs and checks service-account tokens.
func (a *authority) serviceAccountKey() error {
	sa, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(sa.Public())
	if err != nil {
		return err
	}
	key, err := keyPEM(sa)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.dir, "sa.key"), key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, "sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), 0o644)
}

func (a *authority) write(file string, p pair) error {
	if err := os.WriteFile(filepath.Join(a.dir, file+".crt"), p.cert, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(a.dir, file+".key"), p.key, 0o600)
}

func keyPEM(k crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
