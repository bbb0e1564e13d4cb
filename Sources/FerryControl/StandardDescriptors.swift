import Glibc

/// Descriptors 0, 1 and 2, which a program may be started without.
public enum StandardDescriptors {
    /// Takes the places of those that are closed, before anything else is opened.
    ///
    /// Else a socket or a file would get such a number, and what is meant for standard output or standard error would
    /// go there. What takes their place can only be used the wrong way round: to write fails as it does without it.
    public static func hold() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY)
        }
    }
}
