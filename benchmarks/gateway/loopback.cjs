// Portkey's server listens on every interface; this keeps the benchmark's on the loopback.
const net = require('node:net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...words) {
    if (typeof words[0] === 'number' || typeof words[0] === 'string') {
        words = [{ port: Number(words[0]), host: '127.0.0.1' }, words.find((word) => typeof word === 'function')];
    } else if (words[0] && words[0].port !== undefined) {
        words[0] = { ...words[0], host: '127.0.0.1' };
    }
    return listen.apply(this, words);
};
