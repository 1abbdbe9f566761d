package backend

// The parameters of a class that the driver itself reads, or that several back ends have. Holdfast
// sets them in the classes that it makes.
const (
	// ParameterBackend names the back end. It may be missing where there is one.
	ParameterBackend = "backend"
	// ParameterNamespace and ParameterCluster name the StorageCluster.
	ParameterNamespace = "namespace"
	ParameterCluster   = "cluster"
	// ParameterPool and ParameterFilesystem are the names of the Pool or Filesystem, which Ceph
	// knows by the same name.
	ParameterPool       = "pool"
	ParameterFilesystem = "filesystem"
)
