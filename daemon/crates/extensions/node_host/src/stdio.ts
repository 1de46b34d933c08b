/**
 * Sends what extensions print to standard error. Standard output may be the connection.
 *
 * Imported first: the console keeps the stream that it finds at its first use.
 */
Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => process.stderr });
