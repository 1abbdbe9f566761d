package pki

import (
	"bytes"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// WriteKubeconfig writes a kubeconfig file, unless it is there, that holds everything to reach a server as the pair's user. serverName is a name
// that the certificates of all servers are valid for.
func WriteKubeconfig(path, server, serverName string, ca []byte, pair *Pair) error {
	key, err := pair.KeyPEM()
	if err != nil {
		return err
	}
	const name = "holdfast"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: server, TLSServerName: serverName, CertificateAuthorityData: ca,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.CertPEM(), ClientKeyData: key,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, text) {
		return nil
	}
	return atomicfile.Write(path, text, 0o600)
}
